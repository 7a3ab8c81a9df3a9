// tests/capi/trace_test.cpp - a Chrome trace of everything that a launch takes
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "capi/capi.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen::test;

TEST_CASE("the trace of a run shows every stage, nested, in a file that reads back", "[capi]") {
  const ptxgen::TemporaryDirectory folder;
  const std::string file = folder.file("trace.json");
  {
    OwnedDevice device;
    open_emulator(device, {{"PTXGEN_TRACE", file.c_str()}});
    OwnedStream stream;
    good(ptxgen_stream_create(device, PTXGEN_STREAM_NON_BLOCKING, 0, &stream), device);
    OwnedBuffer buffer;
    upload(device, std::vector<float>(32, 1), buffer);
    const ptxgen_span span = ptxgen_buffer_span(buffer);
    good(launch_vadd(device, span, span, span, 32, stream, nullptr), device);
    OwnedPlan plan;
    good(plan_vadd(device, span, span, span, 32, stream, &plan), device);
    good(ptxgen_plan_launch(plan, nullptr), plan);
    good(ptxgen_stream_synchronize(stream), stream);
    CHECK(download(buffer) == std::vector<float>(32, 4));
  }
  const auto trace = nlohmann::json::parse(ptxgen::read_file(file));
  std::multiset<std::string> names;
  struct Interval {
    std::string name;
    long long begin;
    long long end;
  };
  std::map<std::uint64_t, std::vector<Interval>> threads;
  std::size_t kernels = 0;
  std::size_t kernel_counters = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") {
      CHECK(event.at("name").get<std::string>().rfind("vadd", 0) == 0);
      if (event.at("name") == "vadd") {
        ++kernel_counters;
        CHECK(event.at("args").at("global_sectors") == 12);
      }
      continue;
    }
    names.insert(event.at("name").get<std::string>());
    if (event.at("cat") == "emulator") {
      CHECK(event.at("name") == "vadd");
      ++kernels;
    }
    if (event.at("name") == "launch") CHECK(event.at("args").at("kernel") == "vadd");
    if (event.at("name") == "copy") CHECK(event.at("args").at("bytes") == "128");
    const auto ns = [&](const char* key) {
      return std::llround(event.at(key).get<double>() * 1000);
    };
    threads[event.at("tid")].push_back({event.at("name"), ns("ts"), ns("ts") + ns("dur")});
  }
  CHECK(kernels == 2);
  // The second launch has the counts of the first.
  CHECK(kernel_counters == 1);
  // This thread, and the one of the emulated device.
  CHECK(threads.size() == 2);
  for (const char* name : {"build", "gates", "print", "load", "copy", "launch", "wait"}) {
    INFO(name);
    CHECK(names.count(name) >= 1);
  }
  CHECK(names.count("copy") == 2);
  CHECK(names.count("launch") == 2);
  for (const auto& [id, intervals] : threads) {
    for (const Interval& a : intervals) {
      for (const Interval& b : intervals) {
        INFO(a.name << " " << b.name);
        const bool apart = a.end <= b.begin || b.end <= a.begin;
        const bool nested =
            (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
        CHECK((apart || nested));
      }
    }
  }
}
