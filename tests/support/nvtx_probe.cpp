// tests/support/nvtx_probe.cpp - opens spans as the environment says, prints what was pushed
//
// usage: nvtx_probe [RECORDER]   RECORDER: a fake NVTX library, loaded first
//
// The connection to a profiler is one for a process, so each test runs this program.
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <thread>

#include "ptxgen/support/observe.hpp"

using namespace ptxgen;

int main(int count, char** arguments) {
  void* const recorder = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (count > 1 && recorder == nullptr) {
    std::printf("cannot load %s: %s\n", arguments[1], dlerror());
    return 2;
  }
  const auto say = [](void*, LogLevel level, std::string_view message) {
    std::printf("%.*s: %.*s\n", static_cast<int>(to_string(level).size()), to_string(level).data(),
                static_cast<int>(message.size()), message.data());
  };
  set_default_log(Log(LogLevel::Warn, {say, nullptr, nullptr}));
  const Settings settings = Settings::from_environment();
  const Trace trace = open_trace(settings, open_log(settings));
  const Trace second = open_trace(settings, open_log(settings));
  std::printf("on %d profiled %d second %d\n", trace.on(), trace.profiled(), second.profiled());
  {
    const Span outer(trace, std::string_view("load and more").substr(0, 4));
    { const Span inner(second, "assemble"); }
    Span early(trace, "link");
    early.end();
    early.end();
    std::thread([&trace] { const Span other(trace, "other thread"); }).join();
  }
  if (recorder != nullptr) {
    const auto recording =
        reinterpret_cast<const char* (*)()>(dlsym(recorder, "fake_nvtx_recording"));
    std::printf("%s\n", recording == nullptr ? "no recording" : recording());
  }
  return 0;
}
