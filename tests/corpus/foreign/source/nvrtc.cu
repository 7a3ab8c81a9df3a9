// tests/corpus/foreign/source/nvrtc.cu - runtime compiled source for ../nvrtc.ptx
template <typename T>
__global__ void scale(T* data, T factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}
template __global__ void scale<float>(float*, float, int);
extern __device__ float given_elsewhere(float);
__device__ int counter;
extern "C" __global__ void linked(float* data) {
  data[threadIdx.x] = given_elsewhere(data[threadIdx.x]);
  atomicAdd(&counter, 1);
}
__device__ float visible_function(float x) { return x * counter; }
