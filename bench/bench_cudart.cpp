// bench/bench_cudart.cpp - what the CUDA runtime adds to the driver's launch
//
// usage: bench_cudart [FOLDER of libcudart.so.13 and libcuda.so.1]
//
// Both are loaded as a program would load them. An empty kernel is launched and waited for, through
// the driver and through the runtime: by a registered host function, as cudaLaunchKernel finds it,
// and by a kernel's handle, as nvcc's `<<<>>>` does. Of batches of both, in turns, the medians are
// compared. Fails where the runtime adds more than 2 us.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr const char* kText = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing() {
  ret;
}
)";

struct Dim3 {
  unsigned x, y, z;
};

class Library {
 public:
  explicit Library(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    if (handle_ == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(1);
    }
  }
  template <class Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (function != nullptr) return;
    std::fprintf(stderr, "%s is missing\n", name);
    std::exit(1);
  }

 private:
  void* handle_;
};

void must(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s gives %d\n", what, result);
  std::exit(1);
}

/// Median microseconds of a call, over batches in turns with the others.
template <class... Calls>
std::vector<double> medians(int batches, int each, Calls&&... calls) {
  std::vector<std::vector<double>> times(sizeof...(calls));
  for (int batch = 0; batch < batches; ++batch) {
    std::size_t which = 0;
    const auto measure = [&](auto& call) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < each; ++i) call();
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      times[which++].push_back(took.count() / each);
    };
    (measure(calls), ...);
  }
  std::vector<double> found;
  for (std::vector<double>& of_call : times) {
    std::nth_element(of_call.begin(), of_call.begin() + batches / 2, of_call.end());
    found.push_back(of_call[static_cast<std::size_t>(batches / 2)]);
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : PTXGEN_BENCH_STANDIN;
  const Library driver(folder + "/libcuda.so.1");
  const Library runtime(folder + "/libcudart.so.13");

  int (*load)(void**, const void*, void*, void*, unsigned, void*, void*, unsigned) = nullptr;
  int (*get_kernel)(void**, void*, const char*) = nullptr;
  int (*get_function)(void**, const void*) = nullptr;
  int (*launch)(const void*, Dim3, Dim3, void**, std::size_t, void*) = nullptr;
  int (*launch_handle)(void*, Dim3, Dim3, void**, std::size_t, void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*driver_launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void*, void**, void**) = nullptr;
  runtime.find("cudaLibraryLoadData", load);
  runtime.find("cudaLibraryGetKernel", get_kernel);
  runtime.find("cudaGetFuncBySymbol", get_function);
  runtime.find("cudaLaunchKernel", launch);
  runtime.find("__cudaLaunchKernel", launch_handle);
  driver.find("cuStreamSynchronize", synchronize);
  driver.find("cuLaunchKernel", driver_launch);

  void* library = nullptr;
  void* kernel = nullptr;
  void* function = nullptr;
  must(load(&library, kText, nullptr, nullptr, 0, nullptr, nullptr, 0), "cudaLibraryLoadData");
  must(get_kernel(&kernel, library, "nothing"), "cudaLibraryGetKernel");
  must(get_function(&function, kernel), "cudaGetFuncBySymbol");

  const Dim3 one{1, 1, 1};
  const auto by_driver = [&] {
    must(driver_launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "cuLaunchKernel");
    must(synchronize(nullptr), "cuStreamSynchronize");
  };
  const auto by_function = [&] {
    must(launch(kernel, one, one, nullptr, 0, nullptr), "cudaLaunchKernel");
    must(synchronize(nullptr), "cuStreamSynchronize");
  };
  const auto by_handle = [&] {
    must(launch_handle(kernel, one, one, nullptr, 0, nullptr), "__cudaLaunchKernel");
    must(synchronize(nullptr), "cuStreamSynchronize");
  };
  const std::vector<double> found = medians(101, 50, by_driver, by_function, by_handle);
  std::printf("an empty kernel, launched and waited for, median microseconds\n");
  std::printf("  cuLaunchKernel      %8.2f\n", found[0]);
  std::printf("  cudaLaunchKernel    %8.2f  (%+.2f)\n", found[1], found[1] - found[0]);
  std::printf("  __cudaLaunchKernel  %8.2f  (%+.2f)\n", found[2], found[2] - found[0]);
  constexpr double kLimit = 2;
  return std::max(found[1], found[2]) - found[0] <= kLimit ? 0 : 1;
}
