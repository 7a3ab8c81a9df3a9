// tests/emulator/mapped_memory_test.cpp - memory beside allocations, bytes of a load not used
#include <catch2/catch.hpp>

#include <bit>

#include "emulator/memory_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::MemoryKernel;

namespace {

Options as_hardware() {
  Options options;
  options.mapped_pages = true;
  return options;
}

}  // namespace

TEST_CASE("an access beside a buffer says whether a GPU has memory there") {
  struct Row {
    std::int64_t offset;
    bool mapped;
  };
  // The buffer is in the first 2 MiB of device memory.
  for (const Row& row : {Row{4096, true}, Row{-4, true}, Row{1 << 20, true}, Row{5 << 20, false}}) {
    CAPTURE(row.offset);
    MemoryKernel kernel("add.s64 %rd1, %in, " + std::to_string(row.offset) +
                        "; ld.global.u32 %r1, [%rd1]; st.global.u32 [%out], %r1;\n");
    kernel.input(std::vector<std::uint32_t>(1024, 7));
    kernel.output(4);
    Options quiet;
    quiet.checks.remove(Rule::RaceSameValue);
    const Result result = kernel.run(1, 1, quiet);
    REQUIRE(result.findings.size() == 1);
    CHECK(result.findings[0].mapped == row.mapped);
    CHECK(result.status == Status::Findings);
  }
}

TEST_CASE("with mapped pages loads and stores beside a buffer reach memory of no allocation") {
  MemoryKernel kernel(
      "add.u64 %rd1, %in, %t4;\nst.global.u32 [%rd1+128], %t;\nld.global.u32 %r1, [%rd1+128];\n"
      "add.u64 %rd2, %out, %t4;\nst.global.u32 [%rd2], %r1;\n");
  kernel.input(std::vector<std::uint32_t>(32, 7));
  kernel.output(128);
  const Result result = kernel.run(32, 1, as_hardware());
  INFO(findings_of(result));
  REQUIRE(result.findings.size() == 2);
  CHECK(result.findings[0].count == 32);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(kernel.result<std::uint32_t>()[t] == t);
  // Neither buffer has changed, and without them loads give 0.
  std::vector<std::uint32_t> in(32);
  kernel.device().read(kernel.in(), std::as_writable_bytes(std::span(in)));
  CHECK(in == std::vector<std::uint32_t>(32, 7));
  static_cast<void>(kernel.run(32));
  CHECK(kernel.result<std::uint32_t>() == std::vector<std::uint32_t>(32, 0));
}

TEST_CASE("a store that leaves a buffer in part writes the part inside") {
  MemoryKernel kernel("mov.u32 %r1, 1; st.global.v4.u32 [%out], {%r1, %r1, %r1, %r1};\n");
  kernel.input(std::vector<std::uint32_t>(1, 7));
  kernel.output(12);
  CHECK(kernel.run(1, 1, as_hardware()).findings.size() == 1);
  CHECK(kernel.result<std::uint32_t>() == std::vector<std::uint32_t>(3, 1));
  // They are written now: reading them is no finding.
  MemoryKernel none("mov.u32 %r1, 1; st.global.v4.u32 [%out], {%r1, %r1, %r1, %r1};\n");
  none.input(std::vector<std::uint32_t>(1, 7));
  none.output(12);
  CHECK(none.run(1).findings.size() == 1);
  CHECK(none.result<std::uint32_t>() == std::vector<std::uint32_t>(3, 0));
}

TEST_CASE("shared memory is mapped up to the granule of the GPU") {
  const auto run = [](unsigned offset) {
    MemoryKernel kernel("mov.u32 %r1, tile; st.shared.u32 [%r1+" + std::to_string(offset) +
                            "], 9; ld.shared.u32 %r2, [%r1+" + std::to_string(offset) +
                            "]; st.global.u32 [%out], %r2;\n",
                        ".shared .align 4 .b8 tile[100];\n");
    kernel.input(std::vector<std::uint32_t>(1, 7));
    kernel.output(4);
    const Result result = kernel.run(1, 1, as_hardware());
    REQUIRE(result.findings.size() == 2);
    return std::pair(result.findings[0].mapped, kernel.result<std::uint32_t>()[0]);
  };
  CHECK(run(100) == std::pair(true, std::uint32_t{9}));
  CHECK(run(124) == std::pair(true, std::uint32_t{9}));
  CHECK(run(128) == std::pair(false, std::uint32_t{0}));
}

TEST_CASE("an asynchronous copy and an atomic reach mapped shared memory too") {
  MemoryKernel kernel(
      "mov.u32 %r1, tile;\ncp.async.ca.shared.global [%r1+112], [%in], 16;\n"
      "cp.async.wait_all;\natom.shared.add.u32 %r2, [%r1+112], 5;\n"
      "ld.shared.u32 %r3, [%r1+112];\nst.global.u32 [%out], %r3;\n",
      ".shared .align 16 .b8 tile[100];\n");
  kernel.input(std::vector<std::uint32_t>(4, 7));
  kernel.output(4);
  const Result result = kernel.run(1, 1, as_hardware());
  INFO(findings_of(result));
  CHECK(result.findings.size() == 3);
  for (const RunFinding& found : result.findings) CHECK(found.mapped);
  CHECK(kernel.result<std::uint32_t>()[0] == 12);
}

TEST_CASE("bytes of a load that a pragma says are not used are not looked at") {
  const std::string load = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];\n";
  const std::string rest = "add.u32 %r5, %r1, %r2; st.global.u32 [%out], %r5;\n";
  const auto run = [&](const std::string& pragma, std::size_t words) {
    MemoryKernel kernel(pragma + load + rest);
    kernel.input(std::vector<std::uint32_t>(words, 7));
    kernel.output(4);
    const std::string found = findings_of(kernel.run(1));
    CHECK(kernel.result<std::uint32_t>()[0] == (found.empty() ? 14 : 0));
    return found;
  };
  CHECK_THAT(run("", 3), Catch::Contains("[out-of-bounds]"));
  CHECK(run("", 4) == "");
  // nvcc writes the mask in decimal, the PTX manual in hexadecimal.
  CHECK(run(".pragma \"used_bytes_mask 4095\";\n", 3) == "");
  CHECK(run(".pragma \"used_bytes_mask 0xff\";\n.loc 1 1 1\n", 2) == "");
  CHECK_THAT(run(".pragma \"used_bytes_mask 0xffff\";\n", 3), Catch::Contains("[out-of-bounds]"));
  CHECK_THAT(run(".pragma \"used_bytes_mask 0x0fff\";\n", 2), Catch::Contains("[out-of-bounds]"));
  CHECK_THAT(run(".pragma \"nounroll\";\n", 3), Catch::Contains("[out-of-bounds]"));
  // It is for the next instruction only, and only if that is a load.
  CHECK_THAT(run(".pragma \"used_bytes_mask 0xff\";\nadd.u32 %r9, %t, 1;\n", 3),
             Catch::Contains("[out-of-bounds]"));
}

TEST_CASE("unused bytes may be never written, and race with none") {
  // Words 0 and 2 of four are written; thread 32 writes byte 4 while others load.
  const auto run = [](const std::string& pragma) {
    MemoryKernel kernel(
        "mov.u32 %r9, tile;\nsetp.eq.u32 %p1, %t, 0;\n"
        "@%p1 st.shared.u32 [%r9], 1;\n@%p1 st.shared.u32 [%r9+8], 2;\nbar.sync 0;\n"
        "setp.eq.u32 %p2, %t, 32;\n@%p2 st.shared.u8 [%r9+4], 3;\n" +
            pragma +
            "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r9];\n"
            "add.u32 %r5, %r1, %r3; add.u64 %rd1, %out, %t4; st.global.u32 [%rd1], %r5;\n"
            "add.u32 %r6, %r2, %r4; st.global.u32 [%rd1+256], %r6;\n",
        ".shared .align 16 .b8 tile[16];\n");
    kernel.input(std::vector<std::uint32_t>(1, 7));
    kernel.output(512);
    const std::string found = findings_of(kernel.run(64));
    CHECK(kernel.result<std::uint32_t>()[5] == 3);
    return found;
  };
  const std::string all = run("");
  CHECK_THAT(all, Catch::Contains("[uninitialized-read]"));
  CHECK_THAT(all, Catch::Contains("[shared-race]"));
  CHECK(run(".pragma \"used_bytes_mask 0x0f0f\";\n") == "");
  CHECK_THAT(run(".pragma \"used_bytes_mask 0x0fff\";\n"), Catch::Contains("[shared-race]"));
}
