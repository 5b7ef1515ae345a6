/* The sampling part of a gradient step in plain C: the algorithm of rollin/tabular/kernels.py for
 * deterministic dynamics, with 128 action buckets and batches in blocks of LANES trajectories.
 * The action is selected with a mask: the compiler would make a branch of the conditional operator,
 * which is mispredicted so often that the whole takes three times as long. */
#include <stdint.h>
#include <string.h>

enum { LANES = 40, STREAMS = 16, BITS = 7, REPLICAS = 4, MAX_STEPS = 64 };
static const uint32_t FLAG = 0x80000000u, ONES = (1u << BITS) - 1;

static inline uint32_t rotl(uint32_t x, int k) { return x << k | x >> (32 - k); }

static void fill_random(uint32_t s[4][STREAMS], uint32_t *restrict out, int n) {
    for (int b = 0; b < n; b += STREAMS)
        for (int i = 0; i < STREAMS; i++) {
            uint32_t s0 = s[0][i], s1 = s[1][i], s2 = s[2][i], s3 = s[3][i];
            out[b + i] = rotl(s0 + s3, 7) + s0;
            uint32_t t = s1 << 9;
            s2 ^= s0, s3 ^= s1, s1 ^= s2, s0 ^= s3, s2 ^= t;
            s[0][i] = s0, s[1][i] = s1, s[2][i] = s2, s[3][i] = rotl(s3, 11);
        }
}

int rollouts(uint32_t rng[4][STREAMS], const uint32_t *restrict starts, const uint32_t *restrict alias,
             const float *restrict bonus, const uint32_t *restrict successors, float gamma, int batch,
             int steps, float *restrict to_go, int pairs) {
    uint32_t words[MAX_STEPS * LANES + STREAMS], trace[MAX_STEPS * LANES], state[LANES];
    float value[LANES];
    int successes = 0;
    for (int first = 0; first < batch; first += LANES) {
        fill_random(rng, words, steps * LANES);
        memcpy(state, starts + first, sizeof state);
        memset(value, 0, sizeof value);
        for (int t = 0; t < steps; t++) {
            const uint32_t *word = words + t * LANES;
            uint32_t *now = trace + t * LANES;
            for (int i = 0; i < LANES; i++) {
                uint32_t base = state[i] & ~FLAG, bucket = word[i] >> (32 - BITS);
                uint32_t entry = alias[base + bucket], other = entry & ONES;
                uint32_t inside = -(uint32_t)((word[i] << BITS | ONES) < entry);
                now[i] = base + (other ^ ((other ^ bucket) & inside));
                state[i] = successors[now[i]] | (state[i] & FLAG);
            }
        }
        for (int i = 0; i < LANES; i++)
            successes += state[i] >> 31;
        for (int t = steps - 1; t >= 0; t--) {
            const uint32_t *now = trace + t * LANES;
            for (int i = 0; i < LANES; i++)
                value[i] = bonus[now[i]] + gamma * value[i];
            for (int i = 0; i < LANES; i++)
                to_go[(i % REPLICAS) * pairs + now[i]] += value[i];
        }
    }
    return successes;
}
