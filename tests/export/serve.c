/* Asks a SavedModel without Python.

       serve SAVED_MODEL SIGNATURE LIBRARY... -- INPUT=TEXT...

   The libraries hold the ops of tensorflow-text. An input that is given several times is a batch of
   so many rows. Prints a line for each output, sorted by name: name, shape and values, between tabs;
   in strings, backslash, tab and whatever is not printable ASCII stand as \xNN.

   It needs the TensorFlow C library only. What a signature's tensors are called is read from the
   SavedModel's MetaGraphDef (tensorflow/core/protobuf/meta_graph.proto), whose few fields of
   interest are taken from protobuf's wire format here. */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

#define MOST 64 /* tensors of a signature, on either side */

static void stop(const char* what, const char* why) {
  fprintf(stderr, "serve: %s: %s\n", what, why);
  exit(1);
}

static TF_Status* status;

static void check(const char* what) {
  if (TF_GetCode(status) != TF_OK) stop(what, TF_Message(status));
}

/* ---- protobuf ---- */

typedef struct {
  const uint8_t* at;
  const uint8_t* end;
} Bytes;

static uint64_t varint(Bytes* in) {
  uint64_t value = 0;
  for (int shift = 0; in->at < in->end && shift < 64; shift += 7) {
    uint8_t byte = *in->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
  stop("MetaGraphDef", "ends within a number");
  return 0;
}

static Bytes take(Bytes* in, uint64_t size) {
  if (size > (uint64_t)(in->end - in->at)) stop("MetaGraphDef", "ends within a field");
  Bytes taken = {in->at, in->at + size};
  in->at += size;
  return taken;
}

/* Moves `message` behind its next field of this number and of bytes; 0 if there is none. */
static int next_field(Bytes* message, unsigned number, Bytes* content) {
  while (message->at < message->end) {
    uint64_t key = varint(message);
    switch (key & 7) {
      case 0: varint(message); break;
      case 1: take(message, 8); break;
      case 5: take(message, 4); break;
      case 2: {
        Bytes found = take(message, varint(message));
        if (key >> 3 == number) return *content = found, 1;
        break;
      }
      default: stop("MetaGraphDef", "has a field of an unknown kind");
    }
  }
  return 0;
}

/* The value of a string-keyed map entry if its key is `name`, or any key where that is NULL. */
static int entry(Bytes map_entry, const char* name, Bytes* key, Bytes* value) {
  Bytes again = map_entry;
  if (!next_field(&map_entry, 1, key) || !next_field(&again, 2, value)) return 0;
  size_t size = key->end - key->at;
  return name == NULL || (strlen(name) == size && memcmp(name, key->at, size) == 0);
}

/* ---- signatures ---- */

typedef struct {
  char* name;       /* what the signature calls it */
  TF_Output tensor; /* what the graph calls it */
} Named;

static char* text(Bytes bytes) { return strndup((const char*)bytes.at, bytes.end - bytes.at); }

static int by_name(const void* a, const void* b) {
  return strcmp(((const Named*)a)->name, ((const Named*)b)->name);
}

/* The inputs (field 1) or outputs (field 2) of a SignatureDef, sorted by name. */
static int tensors(Bytes signature, unsigned field, TF_Graph* graph, Named* found) {
  Bytes item, key, info, full;
  int count = 0;
  while (next_field(&signature, field, &item)) {
    if (!entry(item, NULL, &key, &info) || !next_field(&info, 1, &full)) continue;
    if (count == MOST) stop("signature", "has too many tensors");
    char* operation = text(full); /* as in "StatefulPartitionedCall:2" */
    char* colon = strrchr(operation, ':');
    if (colon == NULL) stop(operation, "is not the name of a tensor");
    *colon = 0;
    TF_Operation* in_graph = TF_GraphOperationByName(graph, operation);
    if (in_graph == NULL) stop(operation, "is not in the graph");
    found[count].name = text(key);
    found[count].tensor = (TF_Output){in_graph, atoi(colon + 1)};
    count++;
  }
  qsort(found, count, sizeof(Named), by_name);
  return count;
}

/* ---- tensors ---- */

/* The values given for an input, "name=" before each: string [rows]. */
static TF_Tensor* strings(const char* name, int count, char** given) {
  size_t length = strlen(name);
  int64_t rows = 0;
  for (int i = 0; i < count; i++)
    rows += strncmp(given[i], name, length) == 0 && given[i][length] == '=';
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, &rows, 1, rows * sizeof(TF_TString));
  TF_TString* place = TF_TensorData(tensor);
  for (int i = 0; i < count; i++) {
    if (strncmp(given[i], name, length) != 0 || given[i][length] != '=') continue;
    const char* value = given[i] + length + 1;
    TF_StringInit(place);
    TF_StringCopy(place++, value, strlen(value));
  }
  return tensor;
}

static void print_string(const TF_TString* string) {
  const char* bytes = TF_StringGetDataPointer(string);
  for (size_t i = 0; i < TF_StringGetSize(string); i++) {
    unsigned char c = bytes[i];
    if (c < ' ' || c > '~' || c == '\\') printf("\\x%02x", c);
    else putchar(c);
  }
}

static void print(const char* name, const TF_Tensor* tensor) {
  printf("%s\t", name);
  for (int i = 0; i < TF_NumDims(tensor); i++)
    printf(i ? "x%" PRId64 : "%" PRId64, TF_Dim(tensor, i));
  const void* data = TF_TensorData(tensor);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); i++) {
    putchar('\t');
    switch (TF_TensorType(tensor)) {
      case TF_FLOAT: printf("%.9g", ((const float*)data)[i]); break;
      case TF_INT32: printf("%" PRId32, ((const int32_t*)data)[i]); break;
      case TF_STRING: print_string((const TF_TString*)data + i); break;
      default: stop(name, "is of a type that no export has");
    }
  }
  putchar('\n');
}

int main(int argc, char** argv) {
  int given = 3;
  while (given < argc && strcmp(argv[given], "--") != 0) given++;
  if (given >= argc) stop("usage", "serve SAVED_MODEL SIGNATURE LIBRARY... -- INPUT=TEXT...");
  status = TF_NewStatus();
  for (int i = 3; i < given; i++) {
    TF_LoadLibrary(argv[i], status);
    check(argv[i]);
  }
  given++;

  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* meta_graph = TF_NewBuffer();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(
      options, NULL, argv[1], tags, 1, graph, meta_graph, status);
  check(argv[1]);

  Bytes message = {meta_graph->data, (const uint8_t*)meta_graph->data + meta_graph->length};
  Bytes item, key, signature;
  do {
    if (!next_field(&message, 5, &item)) stop(argv[2], "is no signature of the SavedModel");
  } while (!entry(item, argv[2], &key, &signature));

  Named inputs[MOST], outputs[MOST];
  int takes = tensors(signature, 1, graph, inputs), gives = tensors(signature, 2, graph, outputs);
  TF_Output feeds[MOST], fetches[MOST];
  TF_Tensor *values[MOST], *answers[MOST];
  for (int i = 0; i < takes; i++) {
    feeds[i] = inputs[i].tensor;
    values[i] = strings(inputs[i].name, argc - given, argv + given);
  }
  for (int i = 0; i < gives; i++) fetches[i] = outputs[i].tensor;
  TF_SessionRun(session, NULL, feeds, values, takes, fetches, answers, gives, NULL, 0, NULL, status);
  check("answering");
  for (int i = 0; i < gives; i++) print(outputs[i].name, answers[i]);
  return 0;
}
