/**
 * Checks the structure of a Parquet file of a bucket before the library decodes it: the library allocates what the file claims,
 * and an array that is too large ends the process. Limits are those of files that exportd writes: data pages of both
 * versions, PLAIN and dictionary encoding.
 */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { CompressionCodec } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { bounds, boundText } from '../../config/bounds.ts';

/** A file is not one that the library may decode. The message says why, as a clause. */
export class InvalidParquet extends Error {
  override readonly name = 'InvalidParquet';
}

/** A position in Thrift's compact protocol, and how many objects were read so far. */
interface Input {
  readonly bytes: Buffer;
  at: number;
  objects: number;
}

/** The integers and truth values of a struct, and the structs in it, by the id of their field. Nothing else is kept. */
interface Fields {
  readonly integers: ReadonlyMap<number, number>;
  readonly structs: ReadonlyMap<number, Fields>;
}

function readByte(input: Input): number {
  const byte = input.bytes[input.at];
  if (byte === undefined) throw new InvalidParquet('its metadata is incomplete');
  input.at += 1;
  return byte;
}

/** An unsigned varint of at most ten bytes. Above 2^53 it is not exact. */
function readVarint(input: Input): number {
  let value = 0;
  for (let factor = 1, count = 0; count < 10; factor *= 128, count += 1) {
    const byte = readByte(input);
    value += (byte & 0x7f) * factor;
    if (byte < 128) return value;
  }
  throw new InvalidParquet('its metadata has a number that is too long');
}

const readZigzag = (input: Input): number => {
  const value = readVarint(input);
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
};

function skip(input: Input, length: number): void {
  if (length > input.bytes.length - input.at)
    throw new InvalidParquet('its metadata is longer than its footer');
  input.at += length;
}

function countObject(input: Input): void {
  input.objects += 1;
  if (input.objects > bounds.parquetObjects.max)
    throw new InvalidParquet(`its footer has more than ${boundText(bounds.parquetObjects)} objects`);
}

function readList(input: Input, depth: number): void {
  const header = readByte(input);
  const size = header >> 4 === 15 ? readVarint(input) : header >> 4;
  const type = header & 15;
  if (size > input.bytes.length - input.at)
    throw new InvalidParquet('its footer has a list that is longer than it');
  for (let index = 0; index < size; index += 1) readValue(input, type === 2 || type === 1 ? 3 : type, depth);
}

/** Reads a value. Returns integers and structs. */
function readValue(input: Input, type: number, depth: number): number | Fields | undefined {
  switch (type) {
    // In a struct the type of a truth value is its value.
    case 1:
      return 1;
    case 2:
      return 0;
    case 3:
      return readByte(input);
    case 4:
    case 5:
      return readZigzag(input);
    case 6:
      countObject(input);
      return readZigzag(input);
    case 7:
      skip(input, 8);
      return undefined;
    case 8:
      countObject(input);
      skip(input, readVarint(input));
      return undefined;
    case 9:
      countObject(input);
      readList(input, depth);
      return undefined;
    case 12:
      return readStruct(input, depth + 1);
    default:
      throw new InvalidParquet('its footer has a value of an unknown type');
  }
}

function readStruct(input: Input, depth: number): Fields {
  if (depth > bounds.parquetDepth.max) throw new InvalidParquet('its footer is nested too deeply');
  countObject(input);
  const integers = new Map<number, number>();
  const structs = new Map<number, Fields>();
  for (let id = 0; ;) {
    const header = readByte(input);
    if ((header & 15) === 0) return { integers, structs };
    id = header >> 4 === 0 ? readZigzag(input) : id + (header >> 4);
    const value = readValue(input, header & 15, depth);
    if (typeof value === 'number') integers.set(id, value);
    else if (value) structs.set(id, value);
  }
}

/** Checks the metadata at the end of a file. @throws InvalidParquet */
export function checkFooter(metadata: Buffer): void {
  readStruct({ bytes: metadata, at: 0, objects: 0 }, 0);
}

const dataPage = 0;
const dictionaryPage = 2;
const dataPage2 = 3;
/** The fields of the headers by the type of their page. */
const headerFields: Readonly<Record<number, number>> = { [dataPage]: 5, [dictionaryPage]: 7, [dataPage2]: 8 };
/** PLAIN, PLAIN_DICTIONARY, RLE and RLE_DICTIONARY. */
const dictionaryEncodings: ReadonlySet<number> = new Set([2, 8]);
const plainEncodings: ReadonlySet<number> = new Set([0]);
/** Of BOOLEAN columns. */
const runLengthEncoding = 3;

/** What is known of a column chunk from the footer. */
interface Chunk {
  /** The most values that its pages have together, and that its dictionary has. */
  readonly values: number;
  readonly codec: CompressionCodec;
  /** Bits of the highest repetition level and of the highest definition level; 0 if pages have none. */
  readonly levelBits: readonly [repetition: number, definition: number];
}

/**
 * Checks the pages of a column chunk, and unpacks them.
 * @returns the unpacked pages by the offset of their compressed bytes, which the library asks for
 * @throws InvalidParquet
 */
export function unpackPages(bytes: Buffer, chunk: Chunk): Map<number, Uint8Array> {
  const unpacked = new Map<number, Uint8Array>();
  const input: Input = { bytes, at: 0, objects: 0 };
  let total = 0;
  let totalValues = 0;
  // As the library does, which ignores a last byte.
  while (input.at < bytes.length - 1) {
    const { integers, structs } = readStruct(input, 0);
    const [type, size, compressed] = [1, 2, 3].map((id) => integers.get(id) ?? -1) as [
      number,
      number,
      number,
    ];
    const described = structs.get(headerFields[type] ?? 0)?.integers;
    if (!described || compressed < 0 || compressed > bytes.length - input.at)
      throw new InvalidParquet('a page is of an unknown type, or longer than its column');
    total += Math.max(0, size);
    if (size < 0 || total > bounds.parquetColumn.max)
      throw new InvalidParquet(`the pages of a column have more than ${boundText(bounds.parquetColumn)}`);
    const values = described.get(1) ?? -1;
    if (type !== dictionaryPage) totalValues += Math.max(0, values);
    if (values < 0 || Math.max(values, totalValues) > chunk.values)
      throw new InvalidParquet('the pages of a column have more values than its row group');
    const body = bytes.subarray(input.at, input.at + compressed);
    const at = input.at;
    const levels = type === dataPage2 ? checkLevels2(body, values, described, chunk) : 0;
    const isPacked = chunk.codec !== 'UNCOMPRESSED' && (type !== dataPage2 || described.get(7) !== 0);
    const page = isPacked ? unpack(body.subarray(levels), size - levels, chunk.codec) : body.subarray(levels);
    if (isPacked) unpacked.set(at + levels, page);
    if (type === dataPage) checkLevels(page, values, described.get(2) ?? -1, chunk);
    if (type === dataPage2) checkValues(bufferOf(page), values, described.get(4) ?? -1, 0);
    input.at = at + compressed;
  }
  return unpacked;
}

/** Node's decompressors are faster than those of the library. None returns more than `size` bytes. */
function unpack(bytes: Buffer, size: number, codec: CompressionCodec): Uint8Array {
  const options = { maxOutputLength: Math.max(1, size) };
  try {
    switch (codec) {
      case 'GZIP':
        return gunzipSync(bytes, options);
      case 'ZSTD':
        return zstdDecompressSync(bytes, options);
      case 'BROTLI':
        return brotliDecompressSync(bytes, options);
      default: {
        const page = compressors[codec]?.(bytes, size);
        if (!page) throw new InvalidParquet('a column has an unknown compression');
        return page;
      }
    }
  } catch (error) {
    if (error instanceof InvalidParquet) throw error;
    throw new InvalidParquet('a page is damaged, or larger than it says');
  }
}

const bufferOf = (page: Uint8Array): Buffer => Buffer.from(page.buffer, page.byteOffset, page.byteLength);

/** Checks what the library repeats without a limit: runs of levels and of positions in the dictionary. */
function checkLevels(page: Uint8Array, values: number, encoding: number, { levelBits }: Chunk): void {
  const bytes = bufferOf(page);
  let at = 0;
  for (const bits of levelBits) {
    if (bits === 0) continue;
    if (bytes.length < at + 4) throw new InvalidParquet('a page is incomplete');
    checkRuns(bytes.subarray(at + 4), bits, values);
    at += 4 + bytes.readUInt32LE(at);
  }
  // The library reads no runs of positions without bits here.
  checkValues(bytes.subarray(at), values, encoding, 1);
}

/** Checks the levels of a page of version 2, which are before its packed values. @returns their length in bytes */
function checkLevels2(
  body: Buffer,
  values: number,
  header: ReadonlyMap<number, number>,
  { levelBits: [repetitionBits, definitionBits] }: Chunk,
): number {
  const [nulls, definitions, repetitions] = [2, 5, 6].map((id) => header.get(id) ?? -1) as [
    number,
    number,
    number,
  ];
  if (nulls < 0 || nulls > values || definitions < 0 || repetitions < 0)
    throw new InvalidParquet('a page says that it has fewer than no values');
  if (repetitions + definitions > body.length) throw new InvalidParquet('a page is incomplete');
  if (repetitionBits > 0) checkRuns(body, repetitionBits, values);
  if (definitionBits > 0) checkRuns(body.subarray(repetitions), definitionBits, values);
  return repetitions + definitions;
}

/** @param minWidth the least width of positions whose runs the library reads */
function checkValues(bytes: Buffer, values: number, encoding: number, minWidth: number): void {
  if (dictionaryEncodings.has(encoding)) {
    const width = bytes[0] ?? 0;
    if (width > 32) throw new InvalidParquet('a page has positions of more than 32 bits');
    // With fewer values than positions, because of nulls, the library reads no more than there are.
    if (width >= minWidth) checkRuns(bytes.subarray(1), width, values);
  } else if (encoding === runLengthEncoding) checkRuns(bytes.subarray(4), 1, values);
  else if (!plainEncodings.has(encoding)) throw new InvalidParquet('a page has an unknown encoding');
}

/** Checks the runs of at most `values` values of `width` bits, up to the end of the bytes. */
function checkRuns(bytes: Buffer, width: number, values: number): void {
  const input: Input = { bytes, at: 0, objects: 0 };
  for (let seen = 0; seen < values && input.at < bytes.length;) {
    const header = readVarint(input);
    const isPacked = header % 2 === 1;
    const count = isPacked ? ((header - 1) / 2) * 8 : header / 2;
    // Packed values take bytes, and the library drops what is too much of them: writers fill their last group.
    if (!isPacked && count > values - seen)
      throw new InvalidParquet('a page repeats more values than it has');
    input.at += Math.ceil(isPacked ? (count * width) / 8 : width / 8);
    seen += count;
  }
}
