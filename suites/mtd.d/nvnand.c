// SPDX-License-Identifier: GPL-2.0
// A NAND chip that outlives the machine: its bytes stand in shared memory of QEMU (ivshmem), which is a file of the host.
//
// It checks the rules of programming at each operation and counts how often they are broken. At the operation that `cut`
// counts down to, it tears that operation as a power cut would, destroys the paired page, and resets the machine.
//
// The memory, one part behind another: a mark, the data of all pages, their spare bytes, the state of each page, a byte a
// block that says whether it is bad.
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/mtd/mtd.h>
#include <linux/pci.h>
#include <linux/prandom.h>
#include <linux/reboot.h>

#define MARK 0x464c4558464e5631ull
#define HEAD_BYTES 16
#define FREE_AT 2 /* the bad block's mark stands before the free spare bytes */
#define BAD 0xbd

static int blocks = 96, pages = 128, page_bytes = 4096, spare_bytes = 128, free_bytes = 64;
static int mlc, stride = 1, seed = 1;
static long cut = -1;
/* Which operations count until the power fails. */
static int counted;
static bool protect;
static ulong programs, reads, erases, broken, marked;
module_param(blocks, int, 0444);
module_param(pages, int, 0444);
module_param(page_bytes, int, 0444);
module_param(spare_bytes, int, 0444);
module_param(free_bytes, int, 0444);
module_param(mlc, int, 0444);
module_param(stride, int, 0444);
module_param(seed, int, 0444);
module_param(cut, long, 0644);
module_param(counted, int, 0644);
module_param(protect, bool, 0644);
module_param(programs, ulong, 0444);
module_param(reads, ulong, 0444);
module_param(erases, ulong, 0444);
module_param(broken, ulong, 0444);
module_param(marked, ulong, 0444);

enum operation { ANY, ERASE, SECOND_OF_PAIR, OTHER };
enum page_state { ERASED, PROGRAMMED, UNREADABLE, WEAK };
enum torn_program { PROGRAM_OLD, PROGRAM_FULL, PROGRAM_MIXED, PROGRAM_UNREADABLE, PROGRAM_WEAK, TORN_PROGRAMS };
enum torn_erase { ERASE_OLD, ERASE_FULL, ERASE_MIXED, ERASE_WEAK, TORN_ERASES };

static struct mtd_info chip;
static struct pci_dev *device;
static u8 *memory, *data, *spare, *state, *bad;
static struct rnd_state dice;
static DEFINE_MUTEX(busy);

static u32 below(u32 limit)
{
	return prandom_u32_state(&dice) % limit;
}

/* Linux's dist3, in steps of `stride` pages: which pair a page belongs to, and whether it is its second page. */
static int pairing_info(struct mtd_info *mtd, int page, struct mtd_pairing_info *info)
{
	int steps = pages / stride, step = page / stride, pair, group;

	if (step == 0 || step == 2) {
		pair = 0;
		group = step == 2;
	} else if (step == steps - 1 || step == steps - 3) {
		pair = steps / 2 - 1;
		group = step == steps - 1;
	} else {
		group = step % 2 == 0;
		pair = group ? (step - 2) / 2 : (step + 1) / 2;
	}
	info->pair = pair * stride + page % stride;
	info->group = group;
	return 0;
}

static int pairing_page(struct mtd_info *mtd, const struct mtd_pairing_info *wanted)
{
	struct mtd_pairing_info info;
	int page;

	for (page = 0; page < pages; page++) {
		pairing_info(mtd, page, &info);
		if (info.pair == wanted->pair && info.group == wanted->group)
			return page;
	}
	return -EINVAL;
}

static const struct mtd_pairing_scheme dist3 = {
	.ngroups = 2,
	.get_info = pairing_info,
	.get_wunit = pairing_page,
};

static void rule(const char *what, u64 page)
{
	broken++;
	pr_err("nvnand: RULE BROKEN: %s, block %d page %d\n", what, (int)page / pages, (int)page % pages);
}

static bool power_fails(enum operation now)
{
	return cut >= 0 && (counted == ANY || counted == now) && cut-- == 0;
}

static enum operation program_of(u64 page)
{
	struct mtd_pairing_info own;

	pairing_info(&chip, page % pages, &own);
	return mlc && own.group ? SECOND_OF_PAIR : OTHER;
}

static void __noreturn reset_machine(void)
{
	emergency_restart();
	for (;;)
		mdelay(1000);
}

/* Bits that are 1 may become 0, towards `from` or by chance. */
static void mix(u8 *to, const u8 *from, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at++)
		to[at] &= from ? from[at] | (u8)prandom_u32_state(&dice) : (u8)prandom_u32_state(&dice);
}

/* A torn program of the second page of a pair takes the first with it. */
static void destroy_partner(u64 page)
{
	struct mtd_pairing_info own, other;
	u64 first = page - page % pages, earlier;

	pairing_info(&chip, page % pages, &own);
	if (!mlc || own.group == 0)
		return;
	for (earlier = first; earlier < page; earlier++) {
		pairing_info(&chip, earlier % pages, &other);
		if (other.pair != own.pair || state[earlier] != PROGRAMMED)
			continue;
		mix(data + earlier * page_bytes, NULL, 64);
		if (below(3) == 0)
			state[earlier] = UNREADABLE;
		pr_err("nvnand: PAIRED PAGE LOST: block %d page %d\n", (int)earlier / pages, (int)earlier % pages);
	}
}

static void tear_program(u64 page, const u8 *bytes, const u8 *free, size_t length)
{
	u8 *page_data = data + page * page_bytes, *page_free = spare + page * spare_bytes + FREE_AT;
	u32 how = below(TORN_PROGRAMS);

	switch (how) {
	case PROGRAM_FULL:
		memcpy(page_data, bytes, page_bytes);
		memcpy(page_free, free, length);
		state[page] = PROGRAMMED;
		break;
	case PROGRAM_MIXED:
		mix(page_data, bytes, page_bytes);
		mix(page_free, free, length);
		state[page] = PROGRAMMED;
		break;
	case PROGRAM_UNREADABLE:
		mix(page_data, NULL, page_bytes);
		state[page] = UNREADABLE;
		break;
	case PROGRAM_WEAK:
		state[page] = WEAK;
		break;
	}
	destroy_partner(page);
	pr_err("nvnand: POWER CUT in a program, block %d page %d, kind %u\n", (int)page / pages, (int)page % pages, how);
	reset_machine();
}

static void blank_page(u64 page, enum page_state after)
{
	memset(data + page * page_bytes, 0xff, page_bytes);
	memset(spare + page * spare_bytes, 0xff, spare_bytes);
	state[page] = after;
}

static void tear_erase(u64 first)
{
	u32 how = below(TORN_ERASES);
	u64 page;

	for (page = first; page < first + pages; page++) {
		if (how == ERASE_FULL)
			blank_page(page, ERASED);
		else if (how == ERASE_WEAK)
			blank_page(page, WEAK);
		else if (how == ERASE_MIXED && state[page] == PROGRAMMED && below(2))
			state[page] = UNREADABLE;
	}
	pr_err("nvnand: POWER CUT in an erase, block %d, kind %u\n", (int)first / pages, how);
	reset_machine();
}

static int read_pages(struct mtd_info *mtd, loff_t from, struct mtd_oob_ops *ops)
{
	bool raw = ops->mode != MTD_OPS_AUTO_OOB;
	u64 page = div_u64(from, page_bytes), last = page, each;
	size_t width = raw ? spare_bytes : free_bytes, done = 0;
	int result = 0;

	mutex_lock(&busy);
	reads++;
	if (ops->datbuf && ops->len) {
		last = div_u64(from + ops->len - 1, page_bytes);
		memcpy(ops->datbuf, data + from, ops->len);
		ops->retlen = ops->len;
	}
	for (each = page; each <= last; each++)
		if (state[each] == UNREADABLE)
			result = -EBADMSG;
	for (each = page; ops->oobbuf && done < ops->ooblen; each++) {
		size_t count = min_t(size_t, width - ops->ooboffs, ops->ooblen - done);

		memcpy(ops->oobbuf + done, spare + each * spare_bytes + (raw ? 0 : FREE_AT) + ops->ooboffs, count);
		done += count;
	}
	ops->oobretlen = done;
	if (result) {
		mtd->ecc_stats.failed++;
		if (ops->stats)
			ops->stats->uncorrectable_errors++;
	}
	mutex_unlock(&busy);
	return result;
}

static int write_page(u64 page, const u8 *bytes, const u8 *free, size_t length)
{
	u64 later, end = page - page % pages + pages;

	if (state[page] != ERASED && state[page] != WEAK)
		rule("a page is programmed twice", page);
	for (later = page + 1; later < end; later++)
		if (state[later] == PROGRAMMED) {
			rule("a page is programmed behind a later one", page);
			break;
		}
	if (length > free_bytes)
		rule("more spare bytes than are free", page);
	programs++;
	if (power_fails(program_of(page)))
		tear_program(page, bytes, free, length);
	memcpy(data + page * page_bytes, bytes, page_bytes);
	memcpy(spare + page * spare_bytes + FREE_AT, free, length);
	state[page] = state[page] == WEAK ? UNREADABLE : PROGRAMMED;
	return 0;
}

static int write_pages(struct mtd_info *mtd, loff_t to, struct mtd_oob_ops *ops)
{
	u64 page = div_u64(to, page_bytes);
	size_t at, taken = 0;
	int result = 0;

	mutex_lock(&busy);
	if (!ops->datbuf || ops->len % page_bytes || ops->mode != MTD_OPS_AUTO_OOB) {
		rule("a write of other than whole pages with their free spare bytes", page);
		result = -EINVAL;
	}
	if (protect)
		result = -EIO;
	for (at = 0; !result && at < ops->len; at += page_bytes, page++) {
		size_t length = ops->oobbuf ? min_t(size_t, free_bytes, ops->ooblen - taken) : 0;

		result = write_page(page, ops->datbuf + at, ops->oobbuf + taken, length);
		taken += length;
		ops->retlen = at + page_bytes;
		ops->oobretlen = taken;
	}
	mutex_unlock(&busy);
	return result;
}

static int erase_block(struct mtd_info *mtd, struct erase_info *what)
{
	u64 first = div_u64(what->addr, page_bytes), page;
	int result = 0;

	mutex_lock(&busy);
	if (protect) {
		result = -EIO;
	} else {
		erases++;
		if (power_fails(ERASE))
			tear_erase(first);
		for (page = first; page < first + pages; page++)
			blank_page(page, ERASED);
	}
	mutex_unlock(&busy);
	return result;
}

static int is_bad(struct mtd_info *mtd, loff_t at)
{
	return bad[div_u64(at, mtd->erasesize)] == BAD;
}

static int mark_bad(struct mtd_info *mtd, loff_t at)
{
	bad[div_u64(at, mtd->erasesize)] = BAD;
	marked++;
	return 0;
}

static int free_region(struct mtd_info *mtd, int section, struct mtd_oob_region *region)
{
	region->offset = FREE_AT;
	region->length = free_bytes;
	return section ? -ERANGE : 0;
}

static int ecc_region(struct mtd_info *mtd, int section, struct mtd_oob_region *region)
{
	region->offset = FREE_AT + free_bytes;
	region->length = spare_bytes - FREE_AT - free_bytes;
	return section ? -ERANGE : 0;
}

static const struct mtd_ooblayout_ops layout = {
	.ecc = ecc_region,
	.free = free_region,
};

static int map_memory(void)
{
	size_t all = (size_t)blocks * pages, needed = HEAD_BYTES + all * (page_bytes + spare_bytes + 1) + blocks;
	u64 *mark;

	device = pci_get_device(0x1af4, 0x1110, NULL);
	if (!device || pci_enable_device(device))
		return -ENODEV;
	if (pci_resource_len(device, 2) < needed)
		return -ENOSPC;
	memory = memremap(pci_resource_start(device, 2), needed, MEMREMAP_WB);
	if (!memory)
		return -ENOMEM;
	mark = (u64 *)memory;
	data = memory + HEAD_BYTES;
	spare = data + all * page_bytes;
	state = spare + all * spare_bytes;
	bad = state + all;
	if (*mark != MARK) {
		memset(data, 0xff, all * (page_bytes + spare_bytes));
		memset(state, ERASED, all);
		memset(bad, 0, blocks);
		*mark = MARK;
	}
	return 0;
}

static int __init begin(void)
{
	int result = map_memory();

	if (result)
		return result;
	prandom_seed_state(&dice, seed);
	chip.name = "nvnand";
	chip.owner = THIS_MODULE;
	chip.type = mlc ? MTD_MLCNANDFLASH : MTD_NANDFLASH;
	chip.flags = MTD_CAP_NANDFLASH;
	chip.size = (u64)blocks * pages * page_bytes;
	chip.erasesize = pages * page_bytes;
	chip.writesize = chip.writebufsize = page_bytes;
	chip.oobsize = spare_bytes;
	chip.oobavail = free_bytes;
	chip.ecc_strength = 8;
	chip.ecc_step_size = 512;
	chip.bitflip_threshold = 6;
	chip._read_oob = read_pages;
	chip._write_oob = write_pages;
	chip._erase = erase_block;
	chip._block_isbad = is_bad;
	chip._block_markbad = mark_bad;
	mtd_set_ooblayout(&chip, &layout);
	if (mlc)
		mtd_set_pairing_scheme(&chip, &dist3);
	return mtd_device_register(&chip, NULL, 0);
}

static void __exit end(void)
{
	mtd_device_unregister(&chip);
	memunmap(memory);
	pci_dev_put(device);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("A NAND chip that outlives the machine");
MODULE_LICENSE("GPL");
