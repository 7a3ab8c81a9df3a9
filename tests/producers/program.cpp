// tests/producers/program.cpp - reads programs.json, makes inputs from seeds
#include "program.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace ptxgen::test {

namespace {

using nlohmann::json;

// Number `i` of SplitMix64 from `seed`, as programs.py makes it.
std::uint64_t random_number(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15u * (i + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Of a number that is exact in 16 bits: sign, 5 bits of exponent, 10 of fraction.
std::uint16_t half_bits(double number) {
  if (number == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(number), &exponent);
  const auto mantissa = static_cast<unsigned>(fraction * 2048);
  return static_cast<std::uint16_t>((number < 0 ? 0x8000u : 0u) |
                                    static_cast<unsigned>(exponent + 14) << 10 |
                                    (mantissa & 0x3ff));
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 0x3ff;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
std::vector<std::byte> bytes_from(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class T>
T value_from(const std::vector<std::byte>& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

std::array<std::uint32_t, 3> three(const json& list) {
  return {list.at(0).get<std::uint32_t>(), list.at(1).get<std::uint32_t>(),
          list.at(2).get<std::uint32_t>()};
}

ProducerArgument argument(const json& written) {
  const auto field = written.items().begin();
  ProducerArgument result;
  result.type = field.key();
  if (result.type == "buffer") {
    result.buffer = field.value().get<std::string>();
  } else if (result.type == "structure") {
    for (const json& inner : field.value()) result.fields.push_back(argument(inner));
  } else {
    result.number = field.value().get<double>();
  }
  return result;
}

ProducerBuffer buffer(const json& written) {
  ProducerBuffer result;
  result.type = written.at("type").get<std::string>();
  result.count = written.at("count").get<std::size_t>();
  const bool random = written.contains("seed");
  if (!random && !written.contains("value")) return result;
  for (std::size_t i = 0; i < result.count; ++i) {
    double number = 0;
    if (random) {
      const std::uint64_t step = random_number(written.at("seed").get<std::uint64_t>(), i) %
                                 written.at("steps").get<std::uint64_t>();
      number = static_cast<double>(step) * written.at("step").get<double>() +
               written.at("low").get<double>();
    } else {
      number = written.at("value").get<double>();
    }
    const auto bytes = packed(result.type, number);
    result.bytes.insert(result.bytes.end(), bytes.begin(), bytes.end());
  }
  return result;
}

ProducerProgram program(const json& written) {
  ProducerProgram built;
  built.name = written.at("name").get<std::string>();
  for (const auto& [name, text] : written.at("buffers").items()) built.buffers[name] = buffer(text);
  for (const json& one : written.at("launches")) {
    ProducerLaunch& launch = built.launches.emplace_back();
    launch.text = one.at("text").get<std::string>();
    launch.entry = one.at("entry").get<std::string>();
    launch.grid = three(one.at("grid"));
    launch.block = three(one.at("block"));
    launch.shared = one.at("shared").get<std::uint32_t>();
    for (const json& each : one.at("arguments")) launch.arguments.push_back(argument(each));
  }
  for (const auto& [name, result] : written.at("expected").items()) {
    built.expected[name] = {result.at("tolerance").get<double>(),
                            result.at("values").get<std::vector<double>>()};
  }
  return built;
}

}  // namespace

std::size_t bytes_of(const std::string& type) {
  if (type == "bf16") return 2;
  return std::stoul(type.substr(1)) / 8;
}

std::vector<std::byte> packed(const std::string& type, double number) {
  if (type == "f32") return bytes_from(static_cast<float>(number));
  if (type == "f64") return bytes_from(number);
  if (type == "f16") return bytes_from(half_bits(number));
  if (type == "bf16") {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
    return bytes_from(static_cast<std::uint16_t>(bits >> 16));
  }
  // Two's complement, cut to the type's width; little endian.
  auto bytes = bytes_from(number < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(number))
                                     : static_cast<std::uint64_t>(number));
  bytes.resize(bytes_of(type));
  return bytes;
}

double element(const std::string& type, const std::vector<std::byte>& bytes, std::size_t i) {
  if (type == "f32") return static_cast<double>(value_from<float>(bytes, i));
  if (type == "f64") return value_from<double>(bytes, i);
  if (type == "f16") return half_value(value_from<std::uint16_t>(bytes, i));
  if (type == "bf16") {
    const auto bits = static_cast<std::uint32_t>(value_from<std::uint16_t>(bytes, i)) << 16;
    return static_cast<double>(std::bit_cast<float>(bits));
  }
  if (type == "i8") return value_from<std::int8_t>(bytes, i);
  if (type == "u8") return value_from<std::uint8_t>(bytes, i);
  if (type == "u16") return value_from<std::uint16_t>(bytes, i);
  if (type == "i32") return value_from<std::int32_t>(bytes, i);
  if (type == "u32") return value_from<std::uint32_t>(bytes, i);
  if (type == "i64") return static_cast<double>(value_from<std::int64_t>(bytes, i));
  if (type == "u64") return static_cast<double>(value_from<std::uint64_t>(bytes, i));
  throw std::runtime_error("no such type of elements: " + type);
}

ProducerFolder read_producer(const std::filesystem::path& folder) {
  std::ifstream in(folder / "programs.json");
  if (!in) throw std::runtime_error(folder.string() + " holds no programs.json");
  const json all = json::parse(in);
  ProducerFolder result;
  result.producer = all.at("producer").get<std::string>();
  result.version = all.at("version").get<std::string>();
  result.folder = folder;
  for (const json& one : all.at("programs")) result.programs.push_back(program(one));
  return result;
}

}  // namespace ptxgen::test
