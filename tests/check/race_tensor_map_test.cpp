// tests/check/race_tensor_map_test.cpp - races on tensor maps that are changed in shared memory
#include <catch2/catch.hpp>
#include <string>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

// A warp with two maps in shared memory; %p: its first thread.
std::string findings(const std::string& body) {
  const std::string text =
      ".version 8.3\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 out)\n.reqntid 32, 1, 1\n{\n"
      ".shared .align 128 .b8 maps[256];\n.reg .b32 %t, %own, %x;\n.reg .b64 %out;\n"
      ".reg .pred %p;\n"
      "ld.param.u64 %out, [out];\ncvta.to.global.u64 %out, %out;\nmov.u32 %t, %tid.x;\n"
      "setp.eq.u32 %p, %t, 0;\nmov.u32 %own, maps;\nmad.lo.u32 %own, %t, 4, %own;\n" +
      body + "ret;\n}\n";
  const ptx::Module module = ptx::parse(text);
  for (const Finding& finding : ptx::verify(module)) {
    if (finding.severity == Severity::Error) FAIL(to_text(finding));
  }
  std::string all;
  for (const Finding& finding : gates::shared_race(module)) all += finding.message + "\n";
  return all;
}

const std::string kFill = "st.shared.b32 [%own], 0;\n";
const std::string kSync = "bar.warp.sync -1;\n";
std::string change(const std::string& map) {
  return "@%p tensormap.replace.tile.rank.shared::cta.b1024.b32 [" + map + "], 1;\n";
}
std::string publish(const std::string& map) {
  return "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
         "[%out], [" +
         map + "], 128;\n";
}

}  // namespace

TEST_CASE("tensormap.replace reads and writes the 128 bytes of a map") {
  CHECK(findings(kFill + kSync + change("maps") + kSync + publish("maps")) == "");
  CHECK(findings(kFill + change("maps")) != "");
  CHECK(findings(kFill + change("maps+128")) == "");
  CHECK(findings(kFill + kSync + change("maps") + "ld.shared.b32 %x, [%own];\n") != "");
  CHECK(findings(kFill + kSync + change("maps") + "ld.shared.b32 %x, [%own+128];\n") == "");
  // All threads of the warp change the same map.
  CHECK(findings(kFill + kSync +
                 "tensormap.replace.tile.rank.shared::cta.b1024.b32 [maps], 1;\n") != "");
}

TEST_CASE("tensormap.cp_fenceproxy reads shared memory and writes none") {
  CHECK(findings(kFill + publish("maps")) != "");
  CHECK(findings(kFill + publish("maps+128")) == "");
  CHECK(findings(kFill + kSync + publish("maps") + "ld.shared.b32 %x, [%own];\n") == "");
  CHECK(findings(kFill + kSync + publish("maps") + kSync + kFill) == "");
}
