// tests/package/consumer/main.cpp - a program of its own that uses an installed ptxgen
#include <iostream>
#include <string>

#include <ptxgen/ptxgen.hpp>

int main() {
  using namespace ptxgen;
  const auto kernel =
      build_kernel("scale", "sm_89", params(param<Ptr<f32>>("x"), param<f32>("a"), param<u32>("n")),
                   [](KernelBuilder& k, Ptr<f32> x, Value<f32> a, Value<u32> n) {
                     const Value<u32> i = k.global_thread_x();
                     k.if_(i < n, [&] {
                       const Value<f32> element = x[i];
                       x[i] = element * a;
                     });
                   });
  const ptx::Module module = ptx::parse(kernel.ptx());
  if (!ptx::verify(module).empty() || module.find_function("scale") == nullptr) return 1;
  try {
    (void)ptx::target("sm_1");
    return 1;
  } catch (const Error& error) {
    if (error.code != "unknown-target") return 1;
  }
  // A static library needs ICU for this, which the package has to know.
  try {
    (void)model::Tokenizer::read(gguf::File("none.gguf"));
    return 1;
  } catch (const Error& error) {
    if (error.code != "read") return 1;
  }
  std::cout << "ptxgen " << kVersion << ": " << catalog().size() << " kernels, "
            << kernel.ptx().size() << " bytes of PTX\n";
}
