// Attention without its matrix of weights: scores are made, used and forgotten a block at a time.
//
// A block is kWide queries by some keys. It is held transposed, a row per key and a lane per query:
//     Sᵀ = K Qᵀ,  Yᵀ += Vᵀ Pᵀ          forward,
//     dPᵀ = V dYᵀ,  dV += Pᵀ dY,  dK += dSᵀ Q,  dQᵀ += Kᵀ dSᵀ          backward,
// so that maxima and sums over the keys are sums of vectors, and Pᵀ and dSᵀ are operands of the
// next product unpacked. Only K, V, Q and dY are packed beforehand; Q is scaled then.
//
// Forward is an online softmax: the largest score and the sum so far are carried from block to
// block, and Y is scaled down when a larger score comes. For each query log Σ exp(score) is kept;
// from it backward computes the weights again. Blocks that are masked as a whole are left out.
//
// A piece of work is a key-value head with some of its queries. Pieces follow from the sizes alone,
// and if several have one head their dK and dV are added in order: results do not depend on the
// threads.
//
// In bf16 Q, K, V, dY, P and dS are rounded as operands of these products, and nothing else is.
//
// Source: Dao et al., FlashAttention: fast and memory-efficient exact attention with IO-awareness
// (2022).
#pragma once

#include "core/attention/backward.h"
#include "core/attention/few_queries.h"
#include "core/attention/forward.h"
#include "core/attention/products_bf16.h"
