// tests/model/write_alphabet_model.cpp - a tiny model as a file, for tests in scripts
//
// usage: write_alphabet_model FILE.gguf
#include <cstdio>
#include <fstream>

#include "model/alphabet_model.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_alphabet_model FILE.gguf\n", stderr);
    return 2;
  }
  const std::string bytes = ptxgen::test::AlphabetModel().bytes();
  std::ofstream file(argv[1], std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file.good() ? 0 : 1;
}
