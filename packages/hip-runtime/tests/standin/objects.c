/* What code objects say of themselves: the GPU that they are for, and their kernels' metadata. */
#include "standin.h"

#include <elf.h>
#include <string.h>

/* Processors as ELF headers name them (LLVM, "User Guide for AMDGPU Backend", Header): each, then the generic one that
 * stands for it, too. */
static const struct { const char *name; unsigned char number, generic; } processors[] = {
    {"gfx90a", 0x3f, 0}, {"gfx942", 0x4c, 0x5f}, {"gfx1100", 0x41, 0x54}, {"gfx1201", 0x4e, 0x59},
};

enum { FEATURE_OFF = 2, FEATURE_ON = 3 };

/* Whether code that wants a feature so, or leaves it open, runs where the target ID says it is *on*. */
static int suits(unsigned wanted, const char *target, const char *on) {
    return wanted < FEATURE_OFF || (wanted == FEATURE_ON) == (strstr(target, on) != NULL);
}

int runs_on(const char *image, const char *target) {
    unsigned flags = ((const Elf64_Ehdr *)image)->e_flags, number = flags & 0xff;
    size_t length = strcspn(target, ":");
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++)
        if (strlen(processors[i].name) == length && !strncmp(processors[i].name, target, length))
            return (number == processors[i].number || number == processors[i].generic) &&
                   suits(flags >> 8 & 3, target, "xnack+") && suits(flags >> 10 & 3, target, "sramecc+");
    return 0;
}

/* MessagePack, as far as metadata is made of it. */
typedef struct { const unsigned char *at, *end; } Reader;

static uint64_t read_number(Reader *reader, int bytes) {
    uint64_t number = 0;
    while (bytes-- && reader->at < reader->end) number = number << 8 | *reader->at++;
    return number;
}

typedef struct {
    enum { NUMBER, TEXT, LIST, TABLE, OTHER } kind;
    uint64_t number; /* or how many bytes, items or pairs follow */
} Value;

static Value read_value(Reader *reader) {
    unsigned tag = (unsigned)read_number(reader, 1);
    if (tag < 0x80) return (Value){NUMBER, tag};
    if (tag < 0x90) return (Value){TABLE, tag & 15};
    if (tag < 0xa0) return (Value){LIST, tag & 15};
    if (tag < 0xc0) return (Value){TEXT, tag & 31};
    if (tag >= 0xcc && tag <= 0xcf) return (Value){NUMBER, read_number(reader, 1 << (tag - 0xcc))};
    if (tag >= 0xd0 && tag <= 0xd3) return (Value){NUMBER, read_number(reader, 1 << (tag - 0xd0))};
    if (tag >= 0xd9 && tag <= 0xdb) return (Value){TEXT, read_number(reader, 1 << (tag - 0xd9))};
    if (tag == 0xdc || tag == 0xdd) return (Value){LIST, read_number(reader, 2 << (tag - 0xdc))};
    if (tag == 0xde || tag == 0xdf) return (Value){TABLE, read_number(reader, 2 << (tag - 0xde))};
    return (Value){OTHER, 0}; /* nothing, true and false */
}

/* Whether the text that follows is *wanted*; it is passed over. */
static int is_text(Reader *reader, const char *wanted) {
    Value value = read_value(reader);
    const char *text = (const char *)reader->at;
    if (value.kind != TEXT || value.number > (uint64_t)(reader->end - reader->at)) return 0;
    reader->at += value.number;
    return value.number == strlen(wanted) && !memcmp(text, wanted, value.number);
}

static void skip(Reader *reader) {
    Value value = read_value(reader);
    if (value.kind == TEXT) reader->at += value.number;
    uint64_t parts = value.kind == LIST ? value.number : value.kind == TABLE ? 2 * value.number : 0;
    while (parts-- && reader->at < reader->end) skip(reader);
}

/* The number under *wanted* in the entry of the kernel *name*, which follows; 0 where it is another's. */
static uint64_t read_entry(Reader *reader, const char *name, const char *wanted) {
    int is_its = 0;
    uint64_t found = 0;
    for (uint64_t left = read_value(reader).number; left-- && reader->at < reader->end;) {
        Reader key = *reader, again = *reader;
        skip(reader);
        if (is_text(&key, ".name"))
            is_its = is_text(reader, name);
        else if (is_text(&again, wanted))
            found = read_value(reader).number;
        else
            skip(reader);
    }
    return is_its ? found : 0;
}

/* The same in all metadata. */
static uint64_t read_metadata(Reader reader, const char *name, const char *wanted) {
    uint64_t found = 0;
    for (uint64_t left = read_value(&reader).number; left-- && reader.at < reader.end;) {
        if (!is_text(&reader, "amdhsa.kernels")) {
            skip(&reader);
            continue;
        }
        for (uint64_t kernels = read_value(&reader).number; kernels-- && !found;)
            found = read_entry(&reader, name, wanted);
        break;
    }
    return found;
}

uint32_t most_threads(const char *image, const char *kernel) {
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        const Elf64_Nhdr *note = (const void *)(image + sections[i].sh_offset);
        if (sections[i].sh_type != SHT_NOTE || note->n_type != 32) continue; /* NT_AMDGPU_METADATA */
        const unsigned char *start = (const unsigned char *)(note + 1) + (note->n_namesz + 3) / 4 * 4;
        return (uint32_t)read_metadata((Reader){start, start + note->n_descsz}, kernel, ".max_flat_workgroup_size");
    }
    return 0;
}
