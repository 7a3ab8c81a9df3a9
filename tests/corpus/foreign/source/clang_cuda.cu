// tests/corpus/foreign/source/clang_cuda.cu - CUDA without toolkit headers for the
// ../clang_cuda*.ptx
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
struct P {
  int a;
  double b;
  char c[3];
};
__constant__ int lut[5] = {1, 2, 3};

__device__ P chain[2] = {{1, 2.5, {'a', 'b', 'c'}}, {-2, 0.0, {}}};
__device__ int target;
__device__ int* where = &target;
extern __shared__ char dyn[];
extern "C" __device__ int external(P p, float f);
__device__ __attribute__((noinline)) P bump(P p, int k) {
  p.a += k;
  p.c[1] = k;
  return p;
}
template <typename T>
__device__ __attribute__((noinline)) T twice(T v) {
  return v + v;
}
typedef int (*F)(int);
__device__ int neg(int x) { return -x; }
__device__ int inc(int x) { return x + 1; }
__device__ F fs[2] = {neg, inc};
extern "C" __global__ void main_kernel(int* out, P p, int n, F f) {
  __shared__ int box[32];
  int t = __nvvm_read_ptx_sreg_tid_x();
  box[t] = lut[n % 5];
  __syncthreads();
  P q = bump(p, t);
  int local[20];
  for (int i = 0; i < 20; ++i) local[i] = i * n;
  out[t] = q.a + box[31 - t] + twice<int>(n) + (int)twice<float>(1.5f) + fs[n & 1](t) + f(3) +
           local[out[t] % 20] + *where + dyn[t] + external(q, 2.0f);
  __nvvm_atom_add_gen_i(out, 1);
  asm volatile(
      "{\n\t.reg .pred %%p<2>;\n\tsetp.eq.s32 %%p1, %0, 3; // hi\n\t@%%p1 exit;\n\t}" ::"r"(n));
}
__global__ void __attribute__((launch_bounds(128, 2))) second(float* x) {
  *x = __builtin_sqrtf(*x);
}
