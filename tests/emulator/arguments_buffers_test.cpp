// tests/emulator/arguments_buffers_test.cpp - arguments on a device: buffers, block, output files
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "ptxgen/emulator/host/arguments.hpp"
#include "ptxgen/support/error.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;

namespace {

Program::Kernel kernel_of(const std::vector<ptx::Type>& types) {
  Program::Kernel kernel;
  kernel.name = "k";
  for (const ptx::Type type : types) {
    const std::uint32_t bytes = ptx::bytes(type);
    kernel.parameter_bytes = (kernel.parameter_bytes + bytes - 1) / bytes * bytes;
    kernel.parameters.push_back(
        {"p" + std::to_string(kernel.parameters.size()), type, kernel.parameter_bytes, bytes});
    kernel.parameter_bytes += bytes;
  }
  return kernel;
}

std::vector<ArgumentSpec> specs_of(const std::vector<std::string>& texts) {
  std::vector<ArgumentSpec> specs;
  for (const std::string& text : texts) specs.push_back(parse_argument(text));
  return specs;
}

std::string refused(const Program::Kernel& kernel, const std::vector<std::string>& texts) {
  Device device(default_gpu("sm_80"));
  try {
    const Arguments arguments(device, kernel, specs_of(texts));
  } catch (const Error& error) {
    return error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("arguments become buffers and a parameter block") {
  const TemporaryDirectory folder;
  write_file(folder.file("in"), "abcdef");
  write_file(folder.file("both"), "0123");
  Device device(default_gpu("sm_80"));
  const Program::Kernel kernel = kernel_of({ptx::Type::u32, ptx::Type::u64, ptx::Type::f16,
                                            ptx::Type::u64, ptx::Type::u64, ptx::Type::u64});
  const std::vector<ArgumentSpec> specs =
      specs_of({"u32:5", "in:" + folder.file("in"), "f16:1", "out:8:" + folder.file("out"),
                "inout:" + folder.file("both") + ":" + folder.file("back"),
                "zero:0x10:" + folder.file("zero")});
  std::uint64_t address = 0;
  {
    const Arguments arguments(device, kernel, specs);
    REQUIRE(arguments.parameters().size() == 48);
    REQUIRE(arguments.buffers().size() == 4);
    std::uint32_t five = 0;
    std::memcpy(&five, arguments.parameters().data(), 4);
    CHECK(five == 5);
    std::uint16_t one = 0;
    std::memcpy(&one, arguments.parameters().data() + 16, 2);
    CHECK(one == 0x3c00);
    for (const Arguments::Buffer& buffer : arguments.buffers()) {
      std::uint64_t passed = 0;
      std::memcpy(&passed,
                  arguments.parameters().data() + kernel.parameters[buffer.argument].offset, 8);
      CHECK(passed == buffer.address);
      CHECK(passed % 256 == 0);
      CHECK(device.allocation_of(passed).start == passed);
      CHECK(device.allocation_of(passed).bytes == buffer.bytes);
    }
    CHECK(arguments.buffers()[0].bytes == 6);
    CHECK(arguments.buffers()[1].bytes == 8);
    CHECK(arguments.buffers()[2].bytes == 4);
    CHECK(arguments.buffers()[3].bytes == 16);
    std::vector<std::byte> bytes(6);
    device.read(arguments.buffers()[0].address, bytes);
    CHECK(std::memcmp(bytes.data(), "abcdef", 6) == 0);
    address = arguments.buffers()[2].address;
    device.fill(address + 1, std::byte{'x'}, 2);
    arguments.write_outputs();
  }
  CHECK(device.allocation_of(address).bytes == 0);
  CHECK(read_file(folder.file("back")) == "0xx3");
  CHECK(read_file(folder.file("zero")) == std::string(16, '\0'));
  CHECK(read_file(folder.file("out")).size() == 8);
  CHECK(read_file(folder.file("in")) == "abcdef");
}

TEST_CASE("a large output comes back whole") {
  const TemporaryDirectory folder;
  Device device(default_gpu("sm_80"));
  const Arguments arguments(device, kernel_of({ptx::Type::u64}),
                            specs_of({"zero:3000001:" + folder.file("big")}));
  device.fill(arguments.buffers()[0].address + 3'000'000, std::byte{7}, 1);
  arguments.write_outputs();
  const std::string content = read_file(folder.file("big"));
  REQUIRE(content.size() == 3'000'001);
  CHECK(content.back() == 7);
  CHECK(std::count(content.begin(), content.end(), '\0') == 3'000'000);
}

TEST_CASE("arguments that do not fit are refused, and what files are at fault") {
  const Program::Kernel kernel = kernel_of({ptx::Type::u64, ptx::Type::u32});
  CHECK(refused(kernel, {"zero:8", "u32:1"}) == "accepted");
  CHECK(refused(kernel, {"zero:8"}) ==
        "1 argument given, the kernel has 2 parameters (p0, p1); give one for each, in their "
        "order");
  CHECK(refused(kernel_of({}), {"u32:1"}) ==
        "1 argument given, the kernel has 0 parameters; give one for each, in their order");
  CHECK(refused(kernel, {"zero:8", "f32:1"}) ==
        "argument 2 (parameter p1, .u32): 'f32:1' is a float, the parameter is an integer; write "
        "u32:VALUE");
  const TemporaryDirectory folder;
  CHECK(refused(kernel, {"in:" + folder.file("none"), "u32:1"}).find("cannot read the file") !=
        std::string::npos);
  write_file(folder.file("empty"), "");
  CHECK(refused(kernel, {"in:" + folder.file("empty"), "u32:1"}).find("is empty") !=
        std::string::npos);
}

TEST_CASE("every output file is tried, the first failure is reported with the others") {
  const TemporaryDirectory folder;
  Device device(default_gpu("sm_80"));
  const Arguments arguments(
      device, kernel_of({ptx::Type::u64, ptx::Type::u64, ptx::Type::u64}),
      specs_of({"zero:8:" + folder.file("no/a"), "zero:8:" + folder.file("no/b"),
                "zero:8:" + folder.file("c")}));
  try {
    arguments.write_outputs();
    FAIL("written");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    CHECK(error.file == folder.file("no/a"));
    REQUIRE(error.causes.size() == 1);
    CHECK(error.causes[0].file == folder.file("no/b"));
  }
  CHECK(read_file(folder.file("c")).size() == 8);
}
