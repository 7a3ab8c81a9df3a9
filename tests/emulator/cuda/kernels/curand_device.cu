// tests/emulator/cuda/kernels/curand_device.cu - generators of cuRAND on the device
#include <curand_kernel.h>
extern "C" __global__ void curand_philox(unsigned long long seed, uint4* out, float4* uniform,
                                         float4* normal) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t s;
  curand_init(seed, i, 0, &s);
  out[i] = curand4(&s);
  uniform[i] = curand_uniform4(&s);
  normal[i] = curand_normal4(&s);
}
extern "C" __global__ void curand_setup(curandState* states, unsigned long long seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &states[i]);
}
extern "C" __global__ void curand_xorwow(curandState* states, unsigned* out, float* uniform,
                                         double* normal, unsigned* poisson, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState s = states[i];
  for (int k = 0; k < n; ++k) out[i * n + k] = curand(&s);
  uniform[i] = curand_uniform(&s);
  normal[i] = curand_normal_double(&s);
  poisson[i] = curand_poisson(&s, 4.0);
  states[i] = s;
}
extern "C" __global__ void curand_mrg(unsigned long long seed, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStateMRG32k3a s;
  curand_init(seed, i, 0, &s);
  out[i] = curand_uniform(&s);
}
