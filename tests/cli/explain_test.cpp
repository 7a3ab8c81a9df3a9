// tests/cli/explain_test.cpp - ptxgen explain: passes, memory, registers, occupancy
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

json explained(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "explain");
  arguments.emplace_back("--json");
  const auto result = ptxgen_program(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err == "");
  return json::parse(result.out);
}

constexpr std::string_view kTwoKernels =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry first(.param .u64 p) .reqntid 64 {\n"
    "  .reg .b64 %rd<4>; .reg .b32 %r<3>;\n"
    "  ld.param.u64 %rd1, [p];\n  mov.u32 %r1, %tid.x;\n  mad.wide.u32 %rd2, %r1, 64, %rd1;\n"
    "  ld.global.u32 %r2, [%rd2];\n  st.global.u32 [%rd2], %r2;\n  ret;\n}\n"
    ".visible .entry second() { ret; }\n";

}  // namespace

TEST_CASE("explain says how a kernel of the library meets memory") {
  const json strided = explained({"gemv_strided", "--gpu", "h200"});
  CHECK(strided.at("subject") == "gemv_strided");
  CHECK(strided.at("target") == "sm_90a");
  CHECK(strided.at("gpu").at("name") == "h200");
  CHECK(strided.at("passes").size() >= 7);
  REQUIRE(strided.at("kernels").size() == 1);
  const json& kernel = strided.at("kernels")[0];
  CHECK(kernel.at("name") == "gemv_strided");
  std::size_t uncoalesced = 0;
  for (const json& access : kernel.at("memory").at("accesses")) {
    CHECK(access.at("line") > 0);
    CHECK(access.at("cpp").at("line") > 0);
    if (access.at("pattern") != "strided") continue;
    ++uncoalesced;
    CHECK(access.at("factor") == 8.0);
    CHECK(access.at("sectors").at("most") == 32);
    CHECK(access.at("lane_step") == "4*n_dim");
  }
  CHECK(uncoalesced == 1);
  CHECK(kernel.at("occupancy").at("threads") == 32);
  CHECK(kernel.at("occupancy").at("blocks_per_sm") == 32);
  CHECK(kernel.at("occupancy").at("max_warps") == 64);
  CHECK(kernel.at("occupancy").at("limited_by") == "blocks");

  const json coalesced = explained({"gemv_coalesced"});
  for (const json& access : coalesced.at("kernels")[0].at("memory").at("accesses")) {
    CHECK(access.at("pattern") != "strided");
    CHECK(access.at("pattern") != "unknown");
  }
  CHECK(coalesced.at("kernels")[0].at("shared") == json{{"static", 1024}, {"dynamic", 0}});
  // 4 (k n + k + n) bytes, at the datasheet's bandwidth.
  CHECK(coalesced.at("prediction").at("bytes") == 4ull * (4096ull * 4096 + 4096 + 4096));
  CHECK(coalesced.at("prediction").at("min_microseconds").get<double>() ==
        Approx(4.0 * (4096.0 * 4096 + 8192) / 4800 / 1000));
  const json small = explained({"gemv_coalesced", "-p", "k=16", "-p", "n=32"});
  CHECK(small.at("prediction").at("bytes") == 4 * (16 * 32 + 16 + 32));
}

TEST_CASE("explain says it in words, too") {
  const auto result = ptxgen_program({"explain", "gemv_strided", "--gpu", "h200"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "gemv_strided for sm_90a, judged for NVIDIA H200 SXM\n\npasses\n"));
  CHECK(contains(result.out, "\n  fma_fusion: "));
  CHECK(contains(result.out, "\nkernel gemv_strided\n"));
  CHECK(contains(result.out,
                 "strided: lanes are 4*n_dim bytes apart, 32 sectors of 32 bytes for "
                 "128 bytes wanted, 8 times what is needed"));
  CHECK(contains(result.out, "\n  registers: "));
  CHECK(contains(result.out, "\n  shared memory: 0 bytes static, 0 dynamic\n"));
  CHECK(contains(result.out,
                 "\n  occupancy: 32 blocks of 32 threads on a multiprocessor, 32 of 64 warps "
                 "(50.0 %), limited by blocks\n"));
  CHECK(
      contains(result.out, "\nprediction: at least 14.0 us, for 67141632 bytes at 4800.0 GB/s\n"));
}

TEST_CASE("explain takes any PTX, kernel by kernel") {
  TemporaryDirectory folder;
  const std::string file = folder.file("two.ptx");
  write_file(file, kTwoKernels);
  const json all = explained({file, "--passes", "none"});
  CHECK(all.at("subject") == file);
  CHECK(all.at("gpu").at("name") == "a100");
  CHECK(all.at("passes") == json::array());
  CHECK(all.at("prediction").is_null());
  REQUIRE(all.at("kernels").size() == 2);
  const json& first = all.at("kernels")[0];
  REQUIRE(first.at("memory").at("accesses").size() == 2);
  CHECK(first.at("memory").at("accesses")[0].at("line") == 9);
  CHECK(first.at("memory").at("accesses")[0].at("factor") == 8.0);
  CHECK(first.at("occupancy").at("threads") == 64);
  CHECK(all.at("kernels")[1].at("occupancy").is_null());
  const auto text = ptxgen_program({"explain", file, "--gpu", "sm_86"});
  CHECK(contains(text.out, file + " for sm_80, judged for sm_86\n"));
  CHECK(contains(text.out, "occupancy: not known: nothing says how many threads a block has"));
  const std::string written = folder.file("out.txt");
  CHECK(ptxgen_program({"explain", file, "-o", written}).out == "");
  CHECK(contains(read_file(written), "kernel second"));
}

TEST_CASE("explain shows both sides of a copy") {
  TemporaryDirectory folder;
  const std::string file = folder.file("copies.ptx");
  write_file(file,
             ".version 8.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry copies(.param .u64 p, .param .u32 n) .reqntid 64 {\n"
             "  .reg .b64 %rd<4>; .reg .b32 %r<5>; .shared .align 16 .b8 tile[1024];\n"
             "  ld.param.u64 %rd1, [p];\n  mov.u32 %r1, %tid.x;\n"
             "  mad.wide.u32 %rd2, %r1, 16, %rd1;\n  mov.u32 %r2, tile;\n"
             "  mad.lo.u32 %r3, %r1, 16, %r2;\n  ld.param.u32 %r4, [n];\n"
             "  cp.async.cg.shared.global [%r3], [%rd2], 16, %r4;\n  shl.b32 %r4, %r4, 4;\n"
             "  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], %r4;\n  ret;\n}\n");
  const json all = explained({file, "--passes", "none"});
  const json& memory = all.at("kernels")[0].at("memory");
  REQUIRE(memory.at("accesses").size() == 3);
  const json& read = memory.at("accesses")[0];
  const json& write = memory.at("accesses")[1];
  const json& bulk = memory.at("accesses")[2];
  CHECK(read.at("line") == 12);
  CHECK(write.at("line") == 12);
  CHECK(read.at("space") == "global");
  CHECK(write.at("space") == "shared");
  CHECK(read.at("copy") == "lanes");
  CHECK(write.at("copy") == "lanes");
  CHECK(read.at("shortened") == true);
  CHECK(write.at("shortened") == false);
  CHECK(read.at("size") == "");
  CHECK(bulk.at("copy") == "bulk");
  CHECK(bulk.at("size") == "16*n");
  CHECK(bulk.at("bytes") == 0);
  CHECK(bulk.at("pattern") == "coalesced");
  CHECK(memory.at("total").at("unsized") == 1);
  const auto text = ptxgen_program({"explain", file, "--passes", "none"});
  CHECK(contains(text.out,
                 "coalesced: 16 sectors of 32 bytes for 512 bytes wanted, 100 %; for "
                 "copies in full, lanes may read fewer bytes\n"));
  CHECK(contains(text.out, "    no bank conflicts: 4 wavefronts\n"));
  CHECK(contains(text.out, "    coalesced: a copy of 16*n bytes begins at a sector, 100 %\n"));
}

TEST_CASE("explain says why each barrier is there or went") {
  TemporaryDirectory folder;
  const std::string file = folder.file("k.ptx");
  write_file(file,
             ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
             ".reqntid 64\n{\n  .reg .b32 %r<4>;\n  .shared .b32 s[64];\n"
             "  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, s;\n  mad.lo.u32 %r3, %r1, 4, %r2;\n"
             "  st.shared.u32 [%r3], %r1;\n  bar.sync 0;\n  ld.shared.u32 %r1, [%r3];\n"
             "  bar.sync 0;\n  ld.shared.u32 %r1, [s];\n  ret;\n}\n");
  const auto text = ptxgen_program({"explain", file, "--passes", "tokens"});
  INFO(text.out);
  CHECK(contains(text.out, "tokens: changed, 1 ordered-elsewhere, refused 1 conflict, "));
  CHECK(contains(text.out,
                 "'bar.sync 0' is removed: what it orders is ordered without it; 'st.shared.u32 "
                 "[%r3], %r1' in line 12 stays before 'ld.shared.u32 %r1, [s]' in line 16 by "
                 "'bar.sync 0' in line 15 [ordered-elsewhere]\n"));
}

TEST_CASE("wrong calls of explain say what is possible") {
  TemporaryDirectory folder;
  const std::string file = folder.file("two.ptx");
  write_file(file, kTwoKernels);
  const auto refused = [&](std::vector<std::string> arguments, std::string_view message) {
    arguments.insert(arguments.begin(), "explain");
    const auto result = ptxgen_program(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    CHECK(contains(result.err, message));
  };
  refused({"gemvv"}, "there is no kernel 'gemvv'; did you mean 'gemv'?; there are: ");
  refused({"vadd", "-p", "m=1"}, "kernel 'vadd' has no parameter 'm'");
  refused({"vadd", "--gpu", "g80"}, "--gpu g80: there is no GPU 'g80'; write t4, a100");
  refused({"vadd", "--target", "sm_1"}, "there is no target 'sm_1'; there are: sm_75");
  refused({"vadd", "--passes", "x"}, "there is no pass 'x'");
  refused({file, "-p", "n=1"}, "-p is for kernels of the library");
  refused({file, "--target", "sm_90"}, "--target is for kernels of the library");
  refused({folder.file("absent.ptx")}, "cannot read the file");
  write_file(file, ".version 7.8\nnonsense\n");
  refused({file}, file + ":2:");
}
