// tests/emulator/cuda/kernels/function_pointers.cu - calls through tables, arguments and objects
typedef float (*Operation)(float, float);

__device__ __noinline__ float add(float a, float b) { return a + b; }
__device__ __noinline__ float subtract(float a, float b) { return a - b; }
__device__ __noinline__ float multiply(float a, float b) { return a * b; }
__device__ __noinline__ float larger(float a, float b) { return a > b ? a : b; }

__device__ Operation table[4] = {add, subtract, multiply, larger};

__device__ __noinline__ float apply_twice(Operation f, float a, float b) { return f(f(a, b), b); }

extern "C" __global__ void function_pointers(const int* codes, const float* a, const float* b,
                                             float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = apply_twice(table[codes[i]], a[i], b[i]);
}

struct Shape {
  __device__ virtual int area() const = 0;
  __device__ virtual int corners() const { return 0; }
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area() const override { return side * side; }
  __device__ int corners() const override { return 4; }
};
struct Triangle : Shape {
  int base, height;
  __device__ Triangle(int b, int h) : base(b), height(h) {}
  __device__ int area() const override { return base * height / 2; }
  __device__ int corners() const override { return 3; }
};
struct Disc : Shape {
  int radius;
  __device__ explicit Disc(int r) : radius(r) {}
  __device__ int area() const override { return 3 * radius * radius; }
};

__device__ __noinline__ int describe(const Shape& shape) {
  return shape.area() * 10 + shape.corners();
}

extern "C" __global__ void virtual_calls(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const Square square(i);
  const Triangle triangle(i, i + 2);
  const Disc disc(i);
  const Shape* const shapes[3] = {&square, &triangle, &disc};
  out[i] = describe(*shapes[i % 3]);
}
