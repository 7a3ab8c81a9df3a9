// tests/programs/check.cuh - how the programs check themselves
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program with its line where a call of the runtime does not succeed.
#define CUDA(call)                                                                        \
  do {                                                                                    \
    const cudaError_t error_of_call = (call);                                             \
    if (error_of_call != cudaSuccess) {                                                   \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                           \
                  cudaGetErrorName(error_of_call));                                       \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

/// Ends the program where a condition does not hold.
#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      std::printf("%s:%d: not %s\n", __FILE__, __LINE__, #condition);   \
      std::exit(1);                                                     \
    }                                                                   \
  } while (0)

/// Ends the program where a call does not give that error.
#define FAILS(call, expected)                                                          \
  do {                                                                                 \
    const cudaError_t error_of_call = (call);                                          \
    if (error_of_call != (expected)) {                                                 \
      std::printf("%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #call,                \
                  cudaGetErrorName(error_of_call), #expected);                         \
      std::exit(1);                                                                    \
    }                                                                                  \
  } while (0)
