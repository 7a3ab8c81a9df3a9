// tests/driver/image_test.cpp - which PTX of a module image is taken, and refusals
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>

#include "driver/emulated/image.hpp"
#include "fatbin_builder.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using namespace ptxgen::driver::emulated;
using Catch::Contains;
using ptxgen::test::FatbinBuilder;

namespace {

const ptx::Gpu& gpu(std::string_view name) { return *ptx::find_gpu(name); }

std::string text(const std::string& target) {
  return "// made for a test\n.version 9.0\n.target " + target + "\n.address_size 64\n";
}

std::span<const std::byte> bytes(const std::string& s) { return std::as_bytes(std::span(s)); }

/// A copy of exactly these bytes on the heap, so that a read after the end is seen.
struct Exact {
  explicit Exact(std::span<const std::byte> from)
      : size(from.size()), data(new std::byte[from.size()]) {
    std::copy(from.begin(), from.end(), data.get());
  }
  [[nodiscard]] std::span<const std::byte> span() const { return {data.get(), size}; }
  std::size_t size;
  std::unique_ptr<std::byte[]> data;
};

}  // namespace

TEST_CASE("image: text is PTX if it begins with a directive") {
  const std::string ptx = "  /* a */ // b\n.version 8.0\n";
  CHECK(read_image(bytes(ptx), gpu("h200")).ptx == ptx);
  CHECK(read_image(bytes(ptx + std::string(4, '\0')), gpu("h200")).ptx == ptx);
  for (const std::string bad : {"hello", "", "/* .version 8.0", "\x01\x02\x03\\", "#version 1"}) {
    const ModuleImage image = read_image(bytes(bad), gpu("h200"));
    CHECK(image.result == CUDA_ERROR_INVALID_IMAGE);
    CHECK_FALSE(image.why.empty());
  }
  CHECK_THAT(read_image(bytes("a\x01z"), gpu("h200")).why, Contains("'a\\x01z'"));
  const ModuleImage lto = read_image(bytes("\xed\x43N\x7f and more"), gpu("h200"));
  CHECK(lto.result == CUDA_ERROR_INVALID_IMAGE);
  CHECK(lto.why == "the image is LTO IR; link it with nvJitLink, or compile to PTX, without -dlto");
}

TEST_CASE("image: the version is read after comments") {
  CHECK(ptx_version("// x\n/* y */ .version 8.7\n") == 87);
  CHECK(ptx_version(".version\t9.0") == 90);
  CHECK(ptx_version(".version 10.2") == 102);
  CHECK(ptx_version(".target sm_90") == 0);
  CHECK(ptx_version(".version") == 0);
  CHECK(ptx_version(".version 8") == 0);
  CHECK(ptx_version("") == 0);
  CHECK(ptx_version(".version 99999999999999.1") >= 0);
}

TEST_CASE("image: of a fat binary the best PTX for the GPU is taken") {
  FatbinBuilder builder;
  builder.add(FatbinBuilder::Ptx, 75, text("sm_75"))
      .add(FatbinBuilder::Ptx, 90, text("sm_90"))
      .add(FatbinBuilder::Ptx, 90, text("sm_90a"), FatbinBuilder::kArchitecture)
      .add(FatbinBuilder::Ptx, 80, text("sm_80"))
      .add(FatbinBuilder::Cubin, 90, test::cubin_bytes())
      .add(FatbinBuilder::Ptx, 100, text("sm_100f"), FatbinBuilder::kFamily)
      .add(FatbinBuilder::Ptx, 120, text("sm_120"));
  const std::vector<std::byte> fatbin = builder.build();
  const auto taken = [&](std::string_view name) {
    const ModuleImage image = read_image(fatbin, gpu(name));
    CHECK(image.result == CUDA_SUCCESS);
    return std::string(image.ptx);
  };
  CHECK(taken("t4") == text("sm_75"));
  CHECK(taken("a100") == text("sm_80"));
  CHECK(taken("rtx4090") == text("sm_80"));
  CHECK(taken("h200") == text("sm_90a"));
  CHECK(taken("b200") == text("sm_100f"));
  CHECK(taken("rtx5090") == text("sm_120"));
}

TEST_CASE("image: what a fat binary lacks is said") {
  const auto why = [](const FatbinBuilder& builder, std::string_view name) {
    const ModuleImage image = read_image(builder.build(), gpu(name));
    CHECK(image.result == CUDA_ERROR_NO_BINARY_FOR_GPU);
    return image.why;
  };
  FatbinBuilder newer;
  newer.add(FatbinBuilder::Ptx, 100, text("sm_100"));
  CHECK_THAT(why(newer, "h200"), Contains("PTX for sm_100") && Contains("'h200'"));
  FatbinBuilder cubin;
  cubin.add(FatbinBuilder::Cubin, 90, test::cubin_bytes());
  CHECK_THAT(why(cubin, "h200"), Contains("a cubin for sm_90") && Contains("code=compute_XX"));
  CHECK_THAT(why(FatbinBuilder(), "h200"), Contains("no code at all"));
}

namespace {

std::string stored(const std::string& mode) {
  return read_file(std::string(PTXGEN_FATBINS) + "/" + mode + ".fatbin");
}

}  // namespace

TEST_CASE("image: compressed PTX of nvcc is read: zstd, LZ4") {
  const std::string plain = stored("none");
  const std::string_view expected = read_image(bytes(plain), gpu("h200")).ptx;
  CHECK_THAT(std::string(expected), Contains(".entry scale(") && Contains(".entry reverse("));
  struct Mode {
    const char* name;
    Compression compression;
  };
  for (const Mode mode : {Mode{"default", Compression::Zstd}, Mode{"size", Compression::Zstd},
                          Mode{"speed", Compression::Lz4}}) {
    INFO(mode.name);
    const std::string file = stored(mode.name);
    CHECK(file.size() < plain.size());
    CHECK(fatbin_parts(bytes(file)).at(0).compression == mode.compression);
    const ModuleImage image = read_image(bytes(file), gpu("h200"));
    CHECK(image.result == CUDA_SUCCESS);
    CHECK(image.why.empty());
    CHECK(image.ptx == expected);
    // The text outlives a copy and a move of the image.
    ModuleImage copy = image;
    const ModuleImage moved = std::move(copy);
    CHECK(moved.ptx == expected);
    CHECK(read_image(bytes(file), gpu("t4")).result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  }
}

TEST_CASE("image: damaged compressed PTX is refused with what is wrong") {
  const auto why = [](std::string content, std::uint64_t flag, std::uint64_t unpacked) {
    FatbinBuilder builder;
    builder.add(FatbinBuilder::Ptx, 80, content, flag, unpacked);
    const ModuleImage image = read_image(builder.build(), gpu("h200"));
    CHECK(image.result == CUDA_ERROR_INVALID_IMAGE);
    CHECK(image.ptx.empty());
    return image.why;
  };
  CHECK_THAT(why("no frame", FatbinBuilder::kZstd, 100),
             Contains("compressed PTX (zstd) is damaged: "));
  // A token for 15 literals and more, of which there are none.
  CHECK_THAT(why("\xf0", FatbinBuilder::kLz4, 100),
             Contains("compressed PTX (LZ4) is damaged: the block does not decode at byte "));
  // 3 literals, as a last LZ4 sequence.
  const std::string three =
      "\x30"
      "abc";
  CHECK_THAT(why(three, FatbinBuilder::kLz4, 4),
             Contains("it decompresses to 3 bytes, its header says 4"));
  for (const std::uint64_t flag : {FatbinBuilder::kLz4, FatbinBuilder::kZstd}) {
    CHECK_THAT(
        why(three, flag, std::uint64_t{1} << 40),
        Contains("its header says that 4 bytes decompress to 1099511627776 bytes; the format"));
  }
  // What no block of this size can hold is refused before memory is taken for it.
  CHECK_THAT(why(three, FatbinBuilder::kLz4, 4 * 255 + 1),
             Contains("4 bytes decompress to 1021 bytes; the format allows at most 1020"));
  CHECK_THAT(why(three, FatbinBuilder::kZstd, 3 << 17),
             Contains("4 bytes decompress to 393216 bytes; the format allows at most 262144"));
  std::string file = stored("default");
  file[16 + 16 + 1] = '\x7f';  // size of the compressed bytes
  CHECK_THAT(read_image(bytes(file), gpu("h200")).why,
             Contains("damaged at byte 16") && Contains("compressed bytes in 568 of content"));
}

TEST_CASE("image: cut and altered compressed fat binaries are refused or read, never believed") {
  std::mt19937 random(8);
  for (const char* mode : {"default", "speed"}) {
    const std::string file = stored(mode);
    for (std::size_t size = 0; size < file.size(); ++size) {
      const Exact cut(bytes(file.substr(0, size)));
      const ModuleImage image = read_image(cut.span(), gpu("h200"));
      CHECK(image.result == CUDA_ERROR_INVALID_IMAGE);
      CHECK_FALSE(image.why.empty());
    }
    std::size_t refused = 0;
    for (int i = 0; i < 2000; ++i) {
      std::string altered = file;
      for (int n = 0; n < 3; ++n) {
        altered[16 + random() % (altered.size() - 16)] = static_cast<char>(random());
      }
      const Exact exact(bytes(altered));
      const ModuleImage image = read_image(exact.span(), gpu("h200"));
      if (image.result == CUDA_SUCCESS) continue;
      ++refused;
      CHECK_FALSE(image.why.empty());
    }
    // Neither form has a checksum: bytes of the text itself may differ unseen.
    CHECK(refused > 100);
  }
}

TEST_CASE("image: a cubin and another ELF file are refused with different codes") {
  const ModuleImage cubin = read_image(bytes(test::cubin_bytes()), gpu("h200"));
  CHECK(cubin.result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_THAT(cubin.why, Contains("cubin") && Contains("PTX"));
  std::string host = test::cubin_bytes();
  host[18] = 62;
  CHECK(read_image(bytes(host), gpu("h200")).result == CUDA_ERROR_INVALID_IMAGE);
  for (std::size_t n = 4; n < 64; ++n) {
    const Exact cut(bytes(host.substr(0, n)));
    CHECK(read_image(cut.span(), gpu("h200")).result == CUDA_ERROR_INVALID_IMAGE);
  }
}

TEST_CASE("image: linked PTX is found again, a cut one is refused") {
  const std::string ptx = text("sm_80");
  const std::vector<std::byte> image = linked_image(ptx);
  CHECK(read_image(image, gpu("h200")).ptx == ptx);
  CHECK(image_at(image.data()).size() == image.size() - 1);
  for (std::size_t n = 8; n + 1 < image.size(); ++n) {
    const Exact cut(std::span<const std::byte>(image).first(n));
    CHECK(read_image(cut.span(), gpu("h200")).result == CUDA_ERROR_INVALID_IMAGE);
  }
}

TEST_CASE("image: a fat binary cut at any byte is refused, and nothing after it is read") {
  FatbinBuilder builder;
  builder.add(FatbinBuilder::Cubin, 90, test::cubin_bytes())
      .add(FatbinBuilder::Ptx, 80, text("sm_80"))
      .add(FatbinBuilder::Ptx, 90, text("sm_90"));
  const std::vector<std::byte> full = builder.build();
  for (std::size_t n = 0; n < full.size(); ++n) {
    const Exact cut(std::span<const std::byte>(full).first(n));
    CHECK(read_image(cut.span(), gpu("h200")).result == CUDA_ERROR_INVALID_IMAGE);
    // The same with a header that knows the new size: parts are what does not fit.
    if (n < 16) continue;
    const std::uint64_t content = n - 16;
    std::memcpy(cut.data.get() + 8, &content, sizeof content);
    const ModuleImage image = read_image(cut.span(), gpu("h200"));
    if (image.result == CUDA_ERROR_INVALID_IMAGE)
      CHECK_THAT(image.why, Contains("damaged at byte"));
  }
}

TEST_CASE("image: damaged and random bytes are answered, not read past") {
  FatbinBuilder builder;
  builder.add(FatbinBuilder::Ptx, 80, text("sm_80")).add(FatbinBuilder::Cubin, 90, "x");
  const std::vector<std::byte> full = builder.build();
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < test::count(20000, 500000); ++i) {
    std::vector<std::byte> damaged = full;
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
      // Headers, not text, are where the structure is.
      const std::size_t at = random() % 2 == 0 ? random() % 96 : random() % damaged.size();
      damaged[at] = static_cast<std::byte>(random());
    }
    const Exact exact(damaged);
    const ModuleImage image = read_image(exact.span(), gpu("h200"));
    if (image.result != CUDA_SUCCESS) CHECK_FALSE(image.why.empty());
  }
  for (int i = 0; i < test::count(2000, 50000); ++i) {
    std::vector<std::byte> noise(random() % 200);
    for (std::byte& each : noise) each = static_cast<std::byte>(random());
    if (i % 2 == 0 && noise.size() >= 16) std::memcpy(noise.data(), full.data(), 8);
    const Exact exact(noise);
    const ModuleImage image = read_image(exact.span(), gpu("h200"));
    // Only what might be text is passed on to the parser.
    const std::string_view first =
        image.ptx.substr(std::min(image.ptx.find_first_of("./"), image.ptx.size()));
    CHECK((image.result == CUDA_SUCCESS) == !first.empty());
  }
}

TEST_CASE("image: the size of one given by address is its own") {
  FatbinBuilder builder;
  builder.add(FatbinBuilder::Ptx, 80, text("sm_80"));
  const std::vector<std::byte> fatbin = builder.build();
  CHECK(image_at(fatbin.data()).size() == fatbin.size());
  struct Wrapper {
    std::uint32_t magic = 0x466243b1;
    std::uint32_t version = 1;
    const void* data = nullptr;
    const void* more = nullptr;
  } wrapper;
  wrapper.data = fatbin.data();
  CHECK(image_at(&wrapper).data() == fatbin.data());
  CHECK(image_at(&wrapper).size() == fatbin.size());
  wrapper.data = nullptr;
  CHECK(image_at(&wrapper).empty());
  const char* ptx = ".version 8.0";
  CHECK(image_at(ptx).size() == 12);
  // One byte and its zero: nothing after them is looked at.
  for (int first = 0; first < 256; ++first) {
    const auto one = std::make_unique<char[]>(first == 0 ? 1 : 2);
    one[0] = static_cast<char>(first);
    if (first != 0) one[1] = '\0';
    CHECK(image_at(one.get()).size() == (first == 0 ? 0u : 1u));
  }
}

TEST_CASE("image: what nvcc writes is read, compressed or not") {
  const FoundProgram nvcc = find_program(Settings::from_environment(), "nvcc");
  if (nvcc.path.empty())
    return test::skip("no nvcc found: the toolkit's compiler is not installed");
  const TemporaryDirectory folder;
  write_file(folder.file("k.cu"), "extern \"C\" __global__ void k(float* a) { *a *= 2; }\n");
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> argv = {nvcc.path, "--fatbin", folder.file("k.cu"), "-o",
                                     folder.file("k.fatbin")};
    argv.insert(argv.end(), more.begin(), more.end());
    const SubprocessResult built = run_program(argv);
    INFO(built.out << built.err);
    REQUIRE(built.exit_code == 0);
    return read_file(folder.file("k.fatbin"));
  };
  const std::string plain =
      compile({"--no-compress", "-gencode", "arch=compute_80,code=compute_80", "-gencode",
               "arch=compute_90a,code=[compute_90a,sm_90a]", "-lineinfo"});
  const ModuleImage on_h200 = read_image(bytes(plain), gpu("h200"));
  CHECK(on_h200.result == CUDA_SUCCESS);
  CHECK_THAT(std::string(on_h200.ptx), Contains(".target sm_90a") && Contains(".entry k("));
  CHECK_THAT(std::string(read_image(bytes(plain), gpu("rtx4090")).ptx), Contains(".target sm_80"));
  CHECK(fatbin_parts(bytes(plain)).size() == 3);
  const std::string packed = compile({"-gencode", "arch=compute_80,code=compute_80"});
  const ModuleImage image = read_image(bytes(packed), gpu("h200"));
  CHECK(image.result == CUDA_SUCCESS);
  CHECK_THAT(std::string(image.ptx), Contains(".target sm_80") && Contains(".entry k("));
}
