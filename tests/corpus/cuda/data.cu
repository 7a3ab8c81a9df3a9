// tests/corpus/cuda/data.cu - global, constant and managed data with initialisers
// Exercises: initialiser lists, .b8 byte images of structures with generic() pointers and masks,
// arrays of pointers, .managed, .visible/.weak/.extern symbols, zero fill, negative numbers, fp
// constants, alignment.

struct Inner {
  short a;
  float b[2];
  const int* link;
};
struct Outer {
  char tag;
  Inner inner[2];
  double scale;
  const Outer* next;
};

__device__ int plain;
__device__ int zeros[100];
__device__ int primes[10] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ long long wide[3] = {-1, 0x7fffffffffffffffLL, -9223372036854775807LL - 1};
__device__ unsigned char bytes[7] = {1, 2, 255, 0, 0, 7, 9};
__device__ signed short shorts[4] = {-1, -32768, 5, 0};
__device__ float floats[5] = {1.0f, -0.0f, 3.4e38f, 1e-45f, 0.1f};
__device__ double doubles[3] = {1.0 / 3.0, -2.5e-300, __builtin_huge_val()};
__device__ __align__(128) int aligned_block[3] = {1, 2, 3};
__device__ int* pointer_to_data = &primes[3];
__device__ const int* pointers[4] = {primes, &primes[2], nullptr, &plain};
__device__ float2 vectors[2] = {{1.5f, 2.5f}, {3.5f, 4.5f}};
__device__ int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
extern __device__ Outer second;
__device__ Outer first = {
    'f', {{-3, {1.5f, -2.0f}, primes + 1}, {4, {0.0f, 1e10f}, nullptr}}, 6.25, &second};
__device__ Outer second = {
    's', {{7, {0.5f, 8.0f}, &primes[9]}, {8, {9.0f, 10.0f}, &plain}}, -1.0, nullptr};
__constant__ float coefficients[4] = {0.25f, 0.5f, 0.75f, 1.0f};
__constant__ int lookup[256] = {1, 1, 2, 3, 5, 8, 13};
__constant__ Inner constant_inner = {12, {3.0f, 4.0f}, primes + 5};
__managed__ int managed_counter = 41;
__managed__ float managed_table[8];
__device__ bool flags[3] = {true, false, true};
__device__ __attribute__((weak)) int weak_symbol = 5;
static __device__ int hidden = 77;
__device__ const char text[] = "text in global memory";
__device__ const char* text_pointer = text + 5;

template <typename T>
__device__ T table[4] = {1, 2, 3, 4};

extern "C" __global__ void touch(double* out, int i) {
  double r = plain + zeros[i] + primes[i] + static_cast<double>(wide[i % 3]) + bytes[i % 7] +
             shorts[i & 3];
  r += floats[i % 5] + doubles[i % 3] + aligned_block[i % 3] + *pointer_to_data +
       matrix[i & 1][i % 3];
  if (pointers[i & 3] != nullptr) r += *pointers[i & 3];
  const Outer* o = &first;
  for (int k = 0; k < i && o->next != nullptr; ++k) o = o->next;
  r += o->scale + o->inner[i & 1].b[1] + vectors[i & 1].y + *o->inner[0].link;
  r += coefficients[i & 3] + lookup[i & 255] + constant_inner.b[i & 1] + managed_counter;
  r += managed_table[i & 7] + flags[i % 3] + weak_symbol + text[i] + text_pointer[i];
  r += table<int>[i & 3] + table<float>[i & 3];
  hidden += i;
  atomicAdd(&plain, hidden);
  out[i] = r;
}

extern "C" __global__ void addresses(const void** out) {
  out[0] = primes;
  out[1] = &coefficients[2];
  out[2] = &second.inner[1].link;
  out[3] = &managed_counter;
  out[4] = reinterpret_cast<const void*>(reinterpret_cast<unsigned long long>(zeros) + 3);
}
