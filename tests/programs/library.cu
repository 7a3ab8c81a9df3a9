// tests/programs/library.cu - PTX loaded at run time (cudaLibraryLoadData), launched by its handle
#include "check.cuh"

const char kText[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 base = 30;
.visible .entry put(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  ld.global.u32 %r2, [base];
  add.u32 %r3, %r1, %r2;
  mov.u32 %r4, %tid.x;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";

int main() {
  cudaLibrary_t library;
  CUDA(cudaLibraryLoadData(&library, kText, nullptr, nullptr, 0, nullptr, nullptr, 0));
  cudaKernel_t kernel;
  CUDA(cudaLibraryGetKernel(&kernel, library, "put"));
  int *out, value = 12;
  CUDA(cudaMallocManaged(&out, 8 * sizeof(int)));
  void* arguments[] = {&out, &value};
  CUDA(cudaLaunchKernel(reinterpret_cast<void*>(kernel), dim3(1), dim3(8), arguments, 0, nullptr));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 8; ++i) CHECK(out[i] == 42);
  void* base = nullptr;
  std::size_t bytes = 0;
  CUDA(cudaLibraryGetGlobal(&base, &bytes, library, "base"));
  CHECK(bytes == 4);
  FAILS(cudaLibraryGetKernel(&kernel, library, "none"), cudaErrorSymbolNotFound);
  CUDA(cudaLibraryUnload(library));
  std::puts("ok");
}
