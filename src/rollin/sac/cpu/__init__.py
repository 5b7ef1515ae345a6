"""The compiled SAC learner: gradients derived on paper, register tiles in LLVM's own language.

`sac/jax.py` is the readable reference: it holds the same mathematics in the form of the equations,
and a function for each kernel. Start there, then read `kernels.update`, then one step.

Layout. A matrix of R rows and N columns is ⌈N / 16⌉ *panels* of R lines; a line is 16 float32
numbers, one cache line of 64 bytes. Samples are the rows of activations; a layer's bias is the line
behind those of its weights. One layout serves all three products of a layer (`gemm`):

        panel 0           panel 1
    row 0  | 0 … 15 |     | 16 … 31 |      Y  = X W     forward: W as it is
    row 1  | 0 … 15 |     | 16 … 31 |      dX = dY Wᵀ   back: Wᵀ is kept beside W (`turned`)
    …      |        |     |         |      dW = Xᵀ dY   gradient: over the samples, in their order
    addr ──┘  stride ─────┘                a `Panels(addr, stride)` names a matrix from a line on

With bfloat16 a line holds 16 pairs: as *rows*, 32 neighbouring columns of a row; as *pairs*, 16
columns of two neighbouring rows (`gemm_bf16`). Weights, Adam, sums and losses stay float32.

Buffers (`memory`). A case is a set of inputs: POLICY (s, π(s)), NEXT (s', π(s')), DATA (s, a).

    | buffer                                   | holds                                  |
    |------------------------------------------|----------------------------------------|
    | actor_layers critic_layers target_layers | sizes and first lines of each layer    |
    | theta m v target                         | parameters, Adam's moments, targets    |
    | turned copy target_copy                  | transposes; rounded weights (bfloat16) |
    | batch noise observed x                   | the batch; inputs of actor and critics |
    | actor critic / *_rows *_pairs            | activations (float32 / bfloat16)       |
    | actor_mask critic_mask                   | which activations are positive         |
    | heads out action                         | μ and log σ, the same in panels, a     |
    | rows                                     | log π, Q, errors: a number per sample  |
    | delta d_heads / delta_* head_* error_*   | ∂loss/∂(pre-activations)               |
    | gate gate_mask moved order slope         | ∂ min Q/∂a of samples moved together   |
    | gradient sums runs ones zeros            | scratch of a layer's step of Adam      |
    | acting value                             | scratch of `act` and of a critic's Q   |
    | team info settings                       | barrier; losses; hyperparameters       |

An update. Each thread calls the same steps on its share; `|` is a barrier (`kernels.meet`). With an
even number of threads each half of them takes one critic.

    take_inputs policy_heads | choose_actions | critic_values | critic_backward | critic_loss
    critic_step | critic_values | minimum_backward | actor_loss actor_backward | actor_step
    temperature_step |

A step is in `update_steps`, or in `update_steps_bf16`, and its reference in `sac/jax.py`:

    | kernel                              | reference in jax.py                      |
    |-------------------------------------|------------------------------------------|
    | take_inputs                         | take_inputs                              |
    | policy_heads, layers.forward        | policy_heads, mlp                        |
    | choose_actions, update_steps.squash | choose_actions                           |
    | critic_values                       | critic_values                            |
    | bellman_errors                      | bellman_errors                           |
    | critic_loss                         | critic_loss                              |
    | critic_backward, layers.backward    | the gradient of critic_loss              |
    | critic_step, layers.descend         | critic_step                              |
    | actor_loss                          | actor_loss                               |
    | minimum_backward, actor_backward    | the gradient of actor_loss               |
    | actor_step                          | actor_step                               |
    | temperature_step                    | temperature_step                         |
    | layers.adam, simd.adam_line         | adam                                     |
    | simd.follow_line                    | follow                                   |
    | kernels.act                         | act                                      |

Bits. Each number of a product is one chain of fused multiply-adds in the order of k, whichever tile
or thread computes it, and no sum is split between threads: results are the same bit for bit for any
number of threads, for vectors of any width, with the bfloat16 instruction or its emulation.
"""
