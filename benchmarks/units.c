/* What the units of a CPU with AVX512-BF16 give at most: float32 multiply-adds, and products of
 * bfloat16 numbers summed in float32.
 *
 *     gcc -O3 -funroll-all-loops -mavx512f -mavx512bf16 benchmarks/units.c -o units && ./units
 */
#include <immintrin.h>
#include <stdio.h>
#include <time.h>

enum { CHAINS = 12, ROUNDS = 20000000, REPEATS = 5 }; /* chains: enough to hide the latency */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

#define MEASURE(instruction)                                                             \
    static double measure_##instruction(void) {                                          \
        __m512 sum[CHAINS], x = _mm512_set1_ps(1e-20f);                                  \
        for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_setzero_ps();                   \
        double begin = seconds();                                                        \
        for (long k = 0; k < ROUNDS; k++)                                                \
            for (int i = 0; i < CHAINS; i++)                                             \
                __asm__ volatile(#instruction " %1, %1, %0" : "+v"(sum[i]) : "v"(x));    \
        return seconds() - begin;                                                        \
    }
MEASURE(vfmadd231ps)
MEASURE(vdpbf16ps)

int main(void) {
    double count = 1e-9 * CHAINS * ROUNDS; /* of instructions, in thousands of millions */
    for (int i = 0; i < REPEATS; i++) {
        double single = measure_vfmadd231ps(), brain = measure_vdpbf16ps();
        printf("float32 %.0f GFLOP/s, bfloat16 %.0f GFLOP/s: %.2f times as much\n",
               count * 32 / single, count * 64 / brain, 2 * single / brain);
    }
    return 0;
}
