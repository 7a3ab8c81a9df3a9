// ptxgen/model.hpp - files of models, and decoders that run them
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/model/config.hpp"
#include "ptxgen/model/estimate.hpp"
#include "ptxgen/model/generate.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/model/gguf_types.hpp"
#include "ptxgen/model/model.hpp"
#include "ptxgen/model/sampler.hpp"
#include "ptxgen/model/session.hpp"
#include "ptxgen/model/tokenizer.hpp"
