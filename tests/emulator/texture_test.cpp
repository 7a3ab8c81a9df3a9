// tests/emulator/texture_test.cpp - textures and surfaces: filters, modes, accesses, findings
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "emulator/state/address_space.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using Catch::Contains;

namespace {

constexpr std::int64_t kOut = AxisTexels::kBorder;

Sampler sampler_of(AddressMode mode, bool linear, bool normalized) {
  Sampler sampler;
  sampler.address.fill(mode);
  sampler.linear = linear;
  sampler.normalized = normalized;
  return sampler;
}

/// k(object, in, out): 32 threads; thread t has words in[8 t ...] in %r1.. and in %f1.., writes
/// %r11.. to out[4 t ...].
std::string texture_kernel(const std::string& body) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 object, .param .u64 in, .param .u64 out)\n{\n"
      ".reg .pred %p<4>;\n.reg .b16 %h<8>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<12>;\n"
      "ld.param.u64 %rd1, [object];\nld.param.u64 %rd2, [in];\nld.param.u64 %rd3, [out];\n"
      "mov.u32 %r10, %tid.x;\nmul.wide.u32 %rd4, %r10, 32;\nadd.u64 %rd2, %rd2, %rd4;\n"
      "mul.wide.u32 %rd4, %r10, 16;\nadd.u64 %rd3, %rd3, %rd4;\n"
      "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd2];\n"
      "ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd2+16];\n"
      "mov.b32 %r11, 0;\nmov.b32 %r12, 0;\nmov.b32 %r13, 0;\nmov.b32 %r14, 0;\n";
  text += body;
  return text + "\nst.global.v4.b32 [%rd3], {%r11, %r12, %r13, %r14};\nret;\n}\n";
}

using Words = std::array<std::uint32_t, 8>;
using Four = std::array<std::uint32_t, 4>;

Words floats(float x, float y = 0, float z = 0) {
  return {std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(y),
          std::bit_cast<std::uint32_t>(z)};
}
float real(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// A device with memory of elements.
struct Images {
  Device device{default_gpu("sm_80")};
  Texels texels;

  template <class Element>
  Images(const std::vector<Element>& elements, std::uint8_t dimensions, std::uint32_t width,
         std::uint32_t height = 1, std::uint32_t depth = 1, std::uint32_t layers = 0) {
    texels.dimensions = dimensions;
    texels.width = width;
    texels.height = height;
    texels.depth = depth;
    texels.layers = layers;
    texels.channel_bytes = sizeof(Element);
    texels.kind = std::is_floating_point_v<Element> ? ChannelKind::Float
                  : std::is_signed_v<Element>       ? ChannelKind::Signed
                                                    : ChannelKind::Unsigned;
    texels.channels = static_cast<std::uint8_t>(
        elements.size() / (std::size_t{width} * height * depth * std::max(layers, 1u)));
    texels.pitch = std::uint64_t{width} * texels.element_bytes();
    texels.slice = texels.pitch * height;
    texels.address = device.allocate(elements.size() * sizeof(Element), "array 1");
    device.write(texels.address, std::as_bytes(std::span(elements)));
  }

  std::uint64_t texture(const Sampler& sampler) {
    return device.space().images().add({ImageObject::Kind::Texture, texels, sampler});
  }
  std::uint64_t surface() {
    return device.space().images().add({ImageObject::Kind::Surface, texels, {}});
  }

  Result run(const std::string& body, std::uint64_t object, const std::vector<Words>& in,
             std::vector<Four>& out) {
    Program program = Program::load(device, texture_kernel(body));
    std::vector<Words> all(32);
    std::copy(in.begin(), in.end(), all.begin());
    const std::uint64_t in_memory = device.allocate(all.size() * 32, "in");
    const std::uint64_t out_memory = device.allocate(32 * 16, "out");
    device.write(in_memory, std::as_bytes(std::span(all)));
    const std::uint64_t parameters[] = {object, in_memory, out_memory};
    Launch launch;
    launch.kernel = "k";
    launch.block = {32, 1, 1};
    launch.parameters = std::as_bytes(std::span(parameters));
    const Result result = emulator::run(program, launch, {});
    out.resize(32);
    device.read(out_memory, std::as_writable_bytes(std::span(out)));
    return result;
  }
  std::vector<Four> clean(const std::string& body, std::uint64_t object,
                          const std::vector<Words>& in) {
    std::vector<Four> out;
    const Result result = run(body, object, in, out);
    std::string text;
    for (const RunFinding& finding : result.findings) text += to_text(finding) + "\n";
    INFO(text);
    CHECK(result.findings.empty());
    return out;
  }
  std::string findings(const std::string& body, std::uint64_t object,
                       const std::vector<Words>& in) {
    std::vector<Four> out;
    std::string text;
    for (const RunFinding& finding : run(body, object, in, out).findings) {
      text += to_text(finding) + "\n";
    }
    return text;
  }
};

constexpr const char* kTex1d = "tex.1d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1}];";
constexpr const char* kTex2d = "tex.2d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1, %r2}];";
constexpr const char* kTex3d =
    "tex.3d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1, %r2, %r3, %r3}];";

/// The filter in plain words: a value of T, and the sum over the corners.
float reference(const std::vector<float>& values, const std::array<std::uint32_t, 3>& size,
                unsigned dimensions, const Sampler& sampler, const std::array<float, 3>& at) {
  std::array<double, 3> place{};
  for (unsigned i = 0; i < dimensions; ++i) {
    double x = at[i];
    const double lower = std::floor(x);
    if (sampler.normalized && sampler.address[i] == AddressMode::Wrap) x -= lower;
    if (sampler.normalized && sampler.address[i] == AddressMode::Mirror) {
      x = std::fmod(std::fabs(lower), 2) == 1 ? 1 - (x - lower) : x - lower;
    }
    place[i] = sampler.normalized ? x * size[i] : x;
  }
  const auto value = [&](std::array<long, 3> index) -> double {
    for (unsigned i = 0; i < dimensions; ++i) {
      const long n = size[i];
      if (index[i] >= 0 && index[i] < n) continue;
      const AddressMode mode = sampler.normalized || sampler.address[i] == AddressMode::Border
                                   ? sampler.address[i]
                                   : AddressMode::Clamp;
      if (mode == AddressMode::Border) return 0;
      if (mode == AddressMode::Clamp) index[i] = index[i] < 0 ? 0 : n - 1;
      if (mode == AddressMode::Wrap) index[i] = ((index[i] % n) + n) % n;
      // One step outside is all that remains after mirroring the coordinate.
      if (mode == AddressMode::Mirror)
        index[i] = index[i] < 0 ? -1 - index[i] : 2 * n - 1 - index[i];
    }
    return values[static_cast<std::size_t>((index[2] * size[1] + index[1]) * size[0] + index[0])];
  };
  double sum = 0;
  for (unsigned corner = 0; corner < 1u << dimensions; ++corner) {
    double weight = 1;
    std::array<long, 3> index{};
    for (unsigned i = 0; i < dimensions; ++i) {
      const double from = sampler.linear ? place[i] - 0.5 : place[i];
      const double share =
          sampler.linear ? std::floor((from - std::floor(from)) * 256 + 0.5) / 256 : 0;
      weight *= (corner >> i & 1) != 0 ? share : 1 - share;
      index[i] = static_cast<long>(std::floor(from)) + static_cast<long>(corner >> i & 1);
    }
    if (weight != 0) sum += weight * value(index);
  }
  return static_cast<float>(sum);
}

}  // namespace

TEST_CASE("texture: the nearest element in every address mode") {
  struct Row {
    AddressMode mode;
    bool normalized;
    float x;
    std::int64_t index;
  };
  // Four elements.
  const Row rows[] = {
      {AddressMode::Clamp, false, 0.0f, 0},       {AddressMode::Clamp, false, 2.999f, 2},
      {AddressMode::Clamp, false, -5.0f, 0},      {AddressMode::Clamp, false, 4.0f, 3},
      {AddressMode::Clamp, false, 1e30f, 3},      {AddressMode::Clamp, false, NAN, 0},
      {AddressMode::Border, false, -0.01f, kOut}, {AddressMode::Border, false, 4.0f, kOut},
      {AddressMode::Border, false, 3.99f, 3},     {AddressMode::Wrap, false, 5.0f, 3},
      {AddressMode::Mirror, false, -1.0f, 0},     {AddressMode::Clamp, true, 0.5f, 2},
      {AddressMode::Wrap, true, 1.25f, 1},        {AddressMode::Wrap, true, -0.25f, 3},
      {AddressMode::Wrap, true, 7.0f, 0},         {AddressMode::Mirror, true, 1.25f, 3},
      {AddressMode::Mirror, true, -0.25f, 1},     {AddressMode::Mirror, true, 2.25f, 1},
      {AddressMode::Mirror, true, 1.0f, 3},       {AddressMode::Border, true, 1.0f, kOut},
      {AddressMode::Border, true, -0.001f, kOut}, {AddressMode::Wrap, true, INFINITY, 0},
  };
  for (const Row& row : rows) {
    INFO(row.x << " mode " << static_cast<int>(row.mode) << " normalized " << row.normalized);
    const AxisTexels found = axis_texels(sampler_of(row.mode, false, row.normalized), 0, 4, row.x);
    CHECK(found.index[0] == row.index);
    CHECK(found.weight == 0);
  }
}

TEST_CASE("texture: the two elements of the linear filter, and the weight in 1/256") {
  struct Row {
    AddressMode mode;
    bool normalized;
    float x;
    std::int64_t first, second;
    std::uint32_t weight;
  };
  const Row rows[] = {
      {AddressMode::Clamp, false, 1.5f, 1, 2, 0},
      {AddressMode::Clamp, false, 2.0f, 1, 2, 128},
      {AddressMode::Clamp, false, 1.5f + 1.0f / 256, 1, 2, 1},
      // Half a step is rounded up; the last half step of an interval is the next one's begin.
      {AddressMode::Clamp, false, 1.5f + 0.5f / 256, 1, 2, 1},
      {AddressMode::Clamp, false, 1.5f + 0.49f / 256, 1, 2, 0},
      {AddressMode::Clamp, false, 2.499f, 2, 3, 0},
      {AddressMode::Clamp, false, 0.0f, 0, 0, 128},
      {AddressMode::Clamp, false, 4.0f, 3, 3, 128},
      {AddressMode::Border, false, 0.25f, kOut, 0, 192},
      {AddressMode::Border, false, 3.75f, 3, kOut, 64},
      {AddressMode::Wrap, true, 0.0f, 3, 0, 128},
      {AddressMode::Wrap, true, 1.0f - 1.0f / 16, 3, 0, 64},
      {AddressMode::Mirror, true, 0.0f, 0, 0, 128},
      {AddressMode::Mirror, true, 1.0f, 3, 3, 128},
      {AddressMode::Mirror, true, 1.25f, 2, 3, 128},
  };
  for (const Row& row : rows) {
    INFO(row.x << " mode " << static_cast<int>(row.mode) << " normalized " << row.normalized);
    const AxisTexels found = axis_texels(sampler_of(row.mode, true, row.normalized), 0, 4, row.x);
    CHECK(found.index == std::array<std::int64_t, 2>{row.first, row.second});
    CHECK(found.weight == row.weight);
  }
}

TEST_CASE("texture: integers as floats up to 1, and as they are") {
  Texels texels;
  Sampler sampler;
  const auto bits = [&](auto value) {
    std::array<std::byte, 4> element{};
    std::memcpy(element.data(), &value, sizeof value);
    texels.channel_bytes = sizeof value;
    return channel_bits(texels, sampler, element.data(), 0);
  };
  texels.kind = ChannelKind::Unsigned;
  CHECK(real(bits(std::uint8_t{255})) == 1.0f);
  CHECK(real(bits(std::uint8_t{51})) == 0.2f);
  CHECK(real(bits(std::uint16_t{65535})) == 1.0f);
  CHECK(bits(std::uint32_t{7}) == 7);
  texels.kind = ChannelKind::Signed;
  CHECK(real(bits(std::int8_t{-128})) == -1.0f);
  CHECK(real(bits(std::int8_t{-127})) == -1.0f);
  CHECK(real(bits(std::int16_t{32767})) == 1.0f);
  CHECK(real(bits(std::int16_t{-16384})) == -16384.0f / 32767.0f);
  sampler.as_integer = true;
  CHECK(bits(std::int8_t{-3}) == 0xfffffffdu);
  CHECK(bits(std::int16_t{-3}) == 0xfffffffdu);
  texels.kind = ChannelKind::Unsigned;
  CHECK(bits(std::uint16_t{65535}) == 65535);
  texels.kind = ChannelKind::Float;
  CHECK(real(bits(float_to_f16(1.5f))) == 1.5f);
}

TEST_CASE("texture: fetches in 1D, 2D and 3D agree with a plain reference") {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> value(-4, 4);
  const char* const bodies[] = {kTex1d, kTex2d, kTex3d};
  for (unsigned dimensions = 1; dimensions <= 3; ++dimensions) {
    const std::array<std::uint32_t, 3> size{7, dimensions > 1 ? 5u : 1u, dimensions > 2 ? 3u : 1u};
    std::vector<float> values(std::size_t{size[0]} * size[1] * size[2]);
    for (float& element : values) element = value(random);
    Images images(values, static_cast<std::uint8_t>(dimensions), size[0], size[1], size[2]);
    for (unsigned variant = 0; variant < 16; ++variant) {
      const auto mode = static_cast<AddressMode>(variant & 3);
      const Sampler sampler = sampler_of(mode, (variant & 4) != 0, (variant & 8) != 0);
      std::vector<Words> in(32);
      std::vector<std::array<float, 3>> at(32);
      std::uniform_real_distribution<float> place(-1.5f, 2.5f);
      for (std::size_t i = 0; i < in.size(); ++i) {
        for (unsigned k = 0; k < 3; ++k) at[i][k] = place(random) * (sampler.normalized ? 1 : 4);
        in[i] = floats(at[i][0], at[i][1], at[i][2]);
      }
      const std::vector<Four> out =
          images.clean(bodies[dimensions - 1], images.texture(sampler), in);
      for (std::size_t i = 0; i < in.size(); ++i) {
        INFO(dimensions << "D, variant " << variant << ", at " << at[i][0] << " " << at[i][1]);
        CHECK(real(out[i][0]) == reference(values, size, dimensions, sampler, at[i]));
        CHECK(out[i][1] == 0);
      }
    }
  }
}

TEST_CASE("texture: channels, layers, borders, levels and gradients") {
  // Two layers of 2 x 2 elements of two channels.
  std::vector<float> values(16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Images images(values, 2, 2, 2, 1, 2);
  Sampler sampler = sampler_of(AddressMode::Border, false, false);
  sampler.border = {std::bit_cast<std::uint32_t>(-1.0f), std::bit_cast<std::uint32_t>(-2.0f), 7, 7};
  const std::uint64_t texture = images.texture(sampler);
  Words at = floats(0, 1.5f, 0.5f);
  const char* const kForms[] = {
      "tex.a2d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1, %r2, %r3, %r3}];",
      "tex.level.a2d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1, %r2, %r3, %r3}], %r4;",
      // One text; the parentheses say so to clang.
      ("tex.grad.a2d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1, %r2, %r3, %r3}], {%r4, "
       "%r4}, "
       "{%r5, %r5};")};
  for (const char* form : kForms) {
    at[0] = 1;
    CHECK(images.clean(form, texture, {at})[0] ==
          Four{std::bit_cast<std::uint32_t>(10.0f), std::bit_cast<std::uint32_t>(11.0f), 0, 0});
  }
  at[0] = 9;  // the last layer
  CHECK(real(images.clean(kForms[0], texture, {at})[0][0]) == 10);
  at = floats(0, 2.0f, 0);
  at[0] = 0;
  CHECK(images.clean(kForms[0], texture, {at})[0] ==
        Four{std::bit_cast<std::uint32_t>(-1.0f), std::bit_cast<std::uint32_t>(-2.0f), 0, 0});
}

TEST_CASE("texture: integer coordinates, results of f16, sinks and residency") {
  Images images(std::vector<std::uint8_t>{10, 20, 30, 40}, 1, 4);
  Sampler sampler = sampler_of(AddressMode::Clamp, false, true);
  sampler.as_integer = true;
  std::vector<Four> out = images.clean(
      "tex.1d.v4.u32.s32 {%r11, _, _, %r14}|%p1, [%rd1, {%r1}];\nselp.b32 %r12, 1, 0, %p1;",
      images.texture(sampler), {Words{2}, Words{0xffffffff}, Words{9}});
  CHECK(out[0] == Four{30, 1, 0, 0});
  CHECK(out[1][0] == 10);
  CHECK(out[2][0] == 40);
  sampler.as_integer = false;
  out =
      images.clean("tex.1d.v4.f16.s32 {%h1, %h2, %h3, %h4}, [%rd1, {%r1}];\ncvt.u32.u16 %r11, %h1;",
                   images.texture(sampler), {Words{1}});
  CHECK(out[0][0] == float_to_f16(20.0f / 255));
  images.texels.linear = true;
  sampler.address.fill(AddressMode::Border);
  out = images.clean("tex.1d.v4.u32.s32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1}];",
                     images.texture(sampler), {Words{4}, Words{0xffffffff}});
  CHECK(out[0][0] == 0);
  CHECK(out[1][0] == 0);
}

TEST_CASE("texture: tld4 gives a component of the four elements of a filter") {
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Images images(values, 2, 4, 3);
  const std::uint64_t texture = images.texture(sampler_of(AddressMode::Clamp, false, false));
  // Around (2, 1): columns 1 and 2, rows 0 and 1; element (x, y) has 2 (4 y + x) + channel.
  const std::vector<Four> out =
      images.clean("tld4.g.2d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1, %r2}];", texture,
                   {floats(2, 1)});
  CHECK(real(out[0][0]) == 11);
  CHECK(real(out[0][1]) == 13);
  CHECK(real(out[0][2]) == 5);
  CHECK(real(out[0][3]) == 3);
}

TEST_CASE("texture: queries") {
  Images images(std::vector<float>(60), 3, 5, 4, 3);
  const std::uint64_t texture = images.texture(sampler_of(AddressMode::Wrap, true, true));
  CHECK(images.clean("txq.width.b32 %r11, [%rd1];\ntxq.height.b32 %r12, [%rd1];\n"
                     "txq.level.depth.b32 %r13, [%rd1], 0;\n"
                     "txq.normalized_coords.b32 %r14, [%rd1];",
                     texture, {})[5] == Four{5, 4, 3, 1});
  Images layers(std::vector<float>(20), 1, 10, 1, 1, 2);
  CHECK(layers.clean("suq.width.b32 %r11, [%rd1];\nsuq.height.b32 %r12, [%rd1];\n"
                     "suq.array_size.b32 %r13, [%rd1];",
                     layers.surface(), {})[31] == Four{10, 0, 2, 0});
}

TEST_CASE("surface: loads and stores in every boundary mode") {
  std::vector<std::uint32_t> values(12);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(100 + i);
  Images images(values, 2, 4, 3);
  const std::uint64_t surface = images.surface();
  const std::vector<Words> at = {Words{4, 1}, Words{16, 1}, Words{8, 0xffffffff}, Words{12, 9}};
  std::vector<Four> out =
      images.clean("suld.b.2d.b32.clamp {%r11}, [%rd1, {%r1, %r2}];", surface, at);
  CHECK(out[0][0] == 105);
  CHECK(out[1][0] == 107);
  CHECK(out[2][0] == 102);
  CHECK(out[3][0] == 111);
  out = images.clean("suld.b.2d.v2.b32.zero {%r11, %r12}, [%rd1, {%r1, %r2}];", surface,
                     {Words{8, 1}, Words{16, 1}});
  CHECK(out[0] == Four{106, 107, 0, 0});
  CHECK(out[1] == Four{0, 0, 0, 0});

  const auto stored = [&](const std::string& body, const std::vector<Words>& in) {
    images.device.write(images.texels.address, std::as_bytes(std::span(values)));
    images.clean("setp.ge.u32 %p1, %r10, " + std::to_string(in.size()) + ";\n@%p1 bra done;\n" +
                     body + "\ndone:",
                 surface, in);
    std::vector<std::uint32_t> now(values.size());
    images.device.read(images.texels.address, std::as_writable_bytes(std::span(now)));
    return now;
  };
  std::vector<std::uint32_t> now =
      stored("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], %r3;", {Words{4, 2, 7}, Words{0, 0, 8}});
  CHECK(now[9] == 7);
  CHECK(now[0] == 8);
  CHECK(now[1] == 101);
  now = stored("sust.b.2d.b32.zero [%rd1, {%r1, %r2}], %r3;", {Words{4, 3, 7}});
  CHECK(now == values);
  now = stored("sust.b.2d.b32.clamp [%rd1, {%r1, %r2}], %r3;", {Words{0xfffffff0, 3, 7}});
  CHECK(now[8] == 7);
  now = stored("cvt.u16.u32 %h1, %r3;\nsust.b.2d.b8.trap [%rd1, {%r1, %r2}], %h1;",
               {Words{1, 0, 0xff}});
  CHECK(now[0] == (100 | 0xff00));
}

TEST_CASE("surface: findings name the place, the object and what to do") {
  Images images(std::vector<float>(64), 2, 8, 8);
  const std::uint64_t surface = images.surface();
  const std::string store = "sust.b.2d.b32.trap [%rd1, {%r1, %r2}], %r3;";
  CHECK_THAT(images.findings(store, surface, {Words{32, 1}}),
             Contains("out-of-bounds") &&
                 Contains("thread writes 4 bytes at byte 32 of row 1 of surface object 1, outside "
                          "of it (2D, 8 x 8, f32)") &&
                 Contains("the first coordinate is in bytes"));
  CHECK_THAT(images.findings(store, surface, {Words{2, 1}}),
             Contains("misaligned") && Contains("at byte 2 of a row of surface object 1, which is "
                                                "not a multiple of 4"));
  // All threads write one element.
  CHECK_THAT(images.findings("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], %r10;", surface, {}),
             Contains("global-race") && Contains("array 1"));
  images.device.free(images.texels.address);
  CHECK_THAT(images.findings(store, surface, {}), Contains("array 1 (256 bytes), which was freed"));
}

TEST_CASE("texture: findings about handles and memory") {
  Images images(std::vector<float>(8), 1, 8);
  const std::uint64_t texture = images.texture(sampler_of(AddressMode::Clamp, false, false));
  CHECK_THAT(images.findings(kTex1d, 77, {}),
             Contains("texture-object") &&
                 Contains("thread uses 0x4d as texture object, which no object has as its handle"));
  CHECK_THAT(images.findings(kTex2d, texture, {}),
             Contains("the instruction is for a 2D texture, but object 1 is of 1D memory (1D, 8, "
                      "f32)"));
  CHECK_THAT(images.findings("suld.b.1d.b32.trap {%r11}, [%rd1, {%r1}];", texture, {}),
             Contains("thread uses object 1 as a surface, but it is a texture object"));
  CHECK(images.device.space().images().remove(texture, ImageObject::Kind::Texture));
  CHECK_THAT(images.findings(kTex1d, texture, {}),
             Contains("thread uses texture object 1, which was destroyed"));

  images.texels.address = images.device.allocate(32, "array 2");
  CHECK_THAT(
      images.findings(kTex1d, images.texture(sampler_of(AddressMode::Clamp, true, false)), {}),
      Contains("uninitialized-read") && Contains("byte 0 of array 2 (32 bytes)"));
}

TEST_CASE("texture: memory of height 1 is read in 1D, that of height 2 is not") {
  const Sampler sampler = sampler_of(AddressMode::Clamp, false, false);
  Images flat(std::vector<float>{5, 6, 7}, 2, 3, 1);
  CHECK(real(flat.clean(kTex1d, flat.texture(sampler), {floats(1)})[0][0]) == 6);
  Images square(std::vector<float>{5, 6, 7, 8}, 2, 2, 2);
  CHECK_THAT(
      square.findings(kTex1d, square.texture(sampler), {}),
      Contains("the instruction is for a 1D texture, but object 1 is of 2D memory (2D, 2 x 2, "
               "f32)"));
}

TEST_CASE("texture: lanes may use different objects, and a guard selects lanes") {
  Images images(std::vector<float>{1, 2, 3, 4}, 1, 4);
  const Sampler sampler = sampler_of(AddressMode::Clamp, false, false);
  const std::uint64_t first = images.texture(sampler);
  images.texels.address += 8;
  images.texels.width = 2;
  CHECK(images.texture(sampler) == first + 1);
  const std::vector<Four> out = images.clean(
      "and.b32 %r6, %r10, 1;\ncvt.u64.u32 %rd5, %r6;\nadd.u64 %rd1, %rd1, %rd5;\n"
      "setp.lt.u32 %p1, %r10, 30;\n@%p1 tex.1d.v4.f32.f32 {%r11, %r12, %r13, %r14}, [%rd1, {%r1}];",
      first, {});
  CHECK(real(out[4][0]) == 1);
  CHECK(real(out[5][0]) == 3);
  CHECK(out[30][0] == 0);
}

TEST_CASE("texture: references are refused, and what to use instead") {
  Device device{default_gpu("sm_80")};
  CHECK_THROWS_WITH(
      Program::load(device,
                    ".version 8.0\n.target sm_80\n.address_size 64\n.global .texref t;\n"
                    ".visible .entry k()\n{\n.reg .f32 %f<5>;\n"
                    "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1}];\nret;\n}\n"),
      Contains("texture and surface references are not supported by the emulator; use an object, "
               "whose handle is an argument of the kernel"));
}
