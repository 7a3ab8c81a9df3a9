// tests/corpus/cuda/calls.cu - device functions, recursion, function pointers, structures by value
// Exercises: .func with .param in and out, call.uni, call through a register with .callprototype,
// .param space st/ld of structures, recursion, virtual functions, local arrays (.local depot),
// alloca.

struct Pair {
  int key;
  double weight;
  char name[5];
};

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ Pair make_pair(int key, float w) {
  Pair p;
  p.key = key;
  p.weight = w * 2.0;
  for (int i = 0; i < 5; ++i) p.name[i] = static_cast<char>('a' + (key + i) % 26);
  return p;
}

__device__ __noinline__ double consume(Pair p, const Pair& q, bool negate, short s,
                                       unsigned char c) {
  const double r = p.weight * q.weight + p.name[2] + s - c;
  return negate ? -r : r;
}

__device__ __noinline__ float4 four(float a) { return make_float4(a, a * 2, a * 3, a * 4); }
__device__ __noinline__ void nothing(volatile int* p) { *p = 1; }
__device__ __noinline__ unsigned long long no_args() { return clock64(); }

extern "C" __global__ void direct_calls(double* out, int n) {
  const Pair a = make_pair(n, 1.5f);
  const Pair b = make_pair(fibonacci(n & 15), 0.25f);
  const float4 f = four(static_cast<float>(n));
  nothing(reinterpret_cast<int*>(out + 7));
  out[threadIdx.x] = consume(a, b, n > 3, static_cast<short>(n), static_cast<unsigned char>(n)) +
                     f.x + f.w + static_cast<double>(no_args() & 1);
}

__device__ __noinline__ float op_add(float a, float b) { return a + b; }
__device__ __noinline__ float op_mul(float a, float b) { return a * b; }
__device__ __noinline__ float op_mod(float a, float b) { return fmodf(a, b); }

using Op = float (*)(float, float);
__device__ Op op_table[] = {op_add, op_mul, op_mod};
__constant__ Op constant_table[2] = {op_mul, op_add};

extern "C" __global__ void indirect_calls(float* out, const int* which, Op given) {
  float r = op_table[which[threadIdx.x]](out[0], out[1]);
  r = constant_table[which[threadIdx.x] & 1](r, 3.0f);
  if (given != nullptr) r = given(r, r);
  out[threadIdx.x] = r;
}

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
  float radius;
  __device__ explicit Circle(float r) : radius(r) {}
  __device__ float area() const override { return 3.14159f * radius * radius; }
};

extern "C" __global__ void virtual_calls(float* out, int n) {
  Shape* s = n & 1 ? static_cast<Shape*>(new Square(out[0])) : new Circle(out[1]);
  out[threadIdx.x] = s->area();
  delete s;
}

extern "C" __global__ void local_arrays(int* out, const int* in, int n) {
  int histogram[64];
  for (int i = 0; i < 64; ++i) histogram[i] = i;
  for (int i = 0; i < n; ++i) ++histogram[in[i] & 63];
  Pair pairs[3];
  for (int i = 0; i < 3; ++i) pairs[i] = make_pair(histogram[i + n], 2.0f);
  out[threadIdx.x] = histogram[in[threadIdx.x] & 63] + pairs[n % 3].key;
}

extern "C" __global__ void dynamic_stack(int* out, int n) {
  int* scratch = static_cast<int*>(__builtin_alloca(n * sizeof(int)));
  for (int i = 0; i < n; ++i) scratch[i] = out[i];
  for (int i = 0; i < n; ++i) out[i] = scratch[n - 1 - i];
}

extern "C" __device__ int exported_device_function(int a, long long b) {
  return a + static_cast<int>(b);
}
extern "C" __device__ __attribute__((weak)) int weak_device_function(int a) { return a - 1; }

extern "C" __global__ void structures_by_value(Pair p, const __grid_constant__ Pair q, int3 v,
                                               double* out) {
  out[threadIdx.x] = p.weight + q.weight + v.y + p.name[v.z & 3] + weak_device_function(p.key);
}
