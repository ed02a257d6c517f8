/**
 * Avro object container files, as far as Iceberg's metadata needs them. Libraries read whatever a file claims, such as an array of
 * 2^40 values without bytes, and round ids of snapshots to doubles: files come from other writers.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { randomBytes } from 'node:crypto';

/** A schema: the name of a type, a union, or a type with attributes. */
export type AvroSchema =
  | string
  | readonly AvroSchema[]
  | {
      readonly type: AvroSchema;
      readonly name?: string;
      readonly fields?: readonly AvroField[];
      readonly items?: AvroSchema;
      readonly values?: AvroSchema;
      readonly symbols?: readonly string[];
      readonly size?: number;
      readonly logicalType?: string;
      readonly 'element-id'?: number;
    };

export interface AvroField {
  readonly name: string;
  readonly type: AvroSchema;
  readonly 'field-id'?: number;
  readonly default?: null;
}

/** Longs are numbers if they are safe, else bigints. */
export type AvroValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Buffer
  | readonly AvroValue[]
  | { readonly [field: string]: AvroValue };

/** What may be read. */
interface AvroLimits {
  readonly bytes: number;
  readonly values: number;
}

/** The file is not what Avro or the reader allows. */
export class AvroError extends Error {
  override readonly name = 'AvroError';
}

const magic = Buffer.from('Obj\u0001');
const syncBytes = 16;

/** Writes records into one block. @param metadata of the file's header, besides schema and codec */
export function encodeAvro(
  schema: AvroSchema,
  metadata: Readonly<Record<string, string>>,
  records: readonly AvroValue[],
): Buffer {
  const header = { ...metadata, 'avro.schema': JSON.stringify(schema), 'avro.codec': 'deflate' };
  const entries = Object.entries(header);
  const sync = randomBytes(syncBytes);
  const out: Buffer[] = [magic, long(entries.length)];
  for (const [key, value] of entries) out.push(sized(Buffer.from(key)), sized(Buffer.from(value)));
  out.push(long(0), sync);
  if (records.length > 0) {
    const body: Buffer[] = [];
    for (const record of records) write(schema, record, body);
    out.push(long(records.length), sized(deflateRawSync(Buffer.concat(body))), sync);
  }
  return Buffer.concat(out);
}

function long(value: number | bigint): Buffer {
  const wide = BigInt(value);
  let zigzag = BigInt.asUintN(64, (wide << 1n) ^ (wide >> 63n));
  const bytes: number[] = [];
  for (; zigzag > 0x7fn; zigzag >>= 7n) bytes.push(Number(zigzag & 0x7fn) | 0x80);
  bytes.push(Number(zigzag));
  return Buffer.from(bytes);
}

const sized = (bytes: Buffer): Buffer => Buffer.concat([long(bytes.length), bytes]);

function write(schema: AvroSchema, value: AvroValue | undefined, out: Buffer[]): void {
  if (Array.isArray(schema)) {
    const branches = schema as readonly AvroSchema[];
    const isNull = value === null || value === undefined;
    const chosen = branches.findIndex((branch) => (branch === 'null') === isNull);
    out.push(long(chosen));
    write(branches[chosen] ?? 'null', value, out);
    return;
  }
  const { type, ...rest } = typeof schema === 'string' ? { type: schema } : (schema as { type: AvroSchema });
  if (typeof type !== 'string') {
    write(type, value, out);
    return;
  }
  const { fields = [], items = 'null' } = rest as { fields?: readonly AvroField[]; items?: AvroSchema };
  switch (type) {
    case 'null':
      return;
    case 'boolean':
      out.push(Buffer.from([value === true ? 1 : 0]));
      return;
    case 'int':
    case 'long':
      out.push(long(value as number | bigint));
      return;
    case 'string':
      out.push(sized(Buffer.from(value as string)));
      return;
    case 'bytes':
      out.push(sized(value as Buffer));
      return;
    case 'array': {
      const list = value as readonly AvroValue[];
      if (list.length > 0) out.push(long(list.length));
      for (const item of list) write(items, item, out);
      out.push(long(0));
      return;
    }
    case 'record':
      for (const field of fields)
        write(field.type, (value as Readonly<Record<string, AvroValue>>)[field.name], out);
      return;
    default:
      throw new TypeError(`Values of the Avro type ${type} are not written.`);
  }
}

/** A file that was read. Fields of records have the names that `nameOf` gives them. */
interface AvroFile {
  readonly metadata: ReadonlyMap<string, string>;
  readonly records: readonly AvroValue[];
}

/**
 * Reads a file with the schema that it has.
 * @param nameOf the name of a field, by which readers find it whatever its writer calls it
 * @throws AvroError
 */
export function decodeAvro(
  file: Buffer,
  limits: AvroLimits,
  nameOf: (field: AvroField) => string = ({ name }) => name,
): AvroFile {
  const budget = { values: limits.values };
  const cursor = createCursor(file, budget);
  if (!cursor.take(magic.length).equals(magic)) throw new AvroError('It is not an Avro file.');
  const metadata = new Map<string, string>();
  cursor.blocks(() => {
    const key = cursor.sized().toString();
    metadata.set(key, cursor.sized().toString());
  });
  const sync = cursor.take(syncBytes);
  let schema: AvroSchema;
  try {
    schema = JSON.parse(metadata.get('avro.schema') ?? '') as AvroSchema;
  } catch {
    throw new AvroError('Its schema is not JSON.');
  }
  const read = readerOf(schema, nameOf);
  const records: AvroValue[] = [];
  let bytes = 0;
  while (!cursor.isAtEnd()) {
    const count = cursor.count();
    const block = unpack(cursor.sized(), metadata.get('avro.codec') ?? 'null', limits.bytes - bytes);
    bytes += block.length;
    if (!cursor.take(syncBytes).equals(sync)) throw new AvroError('A block is damaged.');
    const inner = createCursor(block, budget);
    for (let index = 0; index < count; index += 1) {
      budget.values -= 1;
      records.push(read(inner));
    }
  }
  return { metadata, records };
}

function unpack(bytes: Buffer, codec: string, maxOutputLength: number): Buffer {
  try {
    switch (codec) {
      case 'null':
        return bytes;
      case 'deflate':
        return inflateRawSync(bytes, { maxOutputLength });
    }
  } catch {
    throw new AvroError('A block cannot be unpacked, or is too large.');
  }
  throw new AvroError('It has a compression other than deflate.');
}

type Cursor = ReturnType<typeof createCursor>;

function createCursor(bytes: Buffer, budget: { values: number }) {
  let at = 0;
  const take = (count: number): Buffer => {
    if (count < 0 || count > bytes.length - at) throw new AvroError('It ends too early.');
    at += count;
    return bytes.subarray(at - count, at);
  };
  const wide = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const [byte = 0] = take(1);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n));
    }
    throw new AvroError('A number is too long.');
  };
  const number = (): number => {
    const value = Number(wide());
    if (!Number.isSafeInteger(value)) throw new AvroError('A length is too large.');
    return value;
  };
  const spend = (): void => {
    budget.values -= 1;
    if (budget.values < 0) throw new AvroError('It has too many values.');
  };
  return {
    take,
    spend,
    long: (): number | bigint => {
      const value = wide();
      return Number.isSafeInteger(Number(value)) ? Number(value) : value;
    },
    number,
    count: (): number => {
      const count = number();
      if (count < 0 || count > budget.values) throw new AvroError('It has too many values.');
      return count;
    },
    sized: (): Buffer => take(number()),
    /** Calls `read` for each value of an array or a map. */
    blocks: (read: () => void): void => {
      for (let count = number(); count !== 0; count = number()) {
        // A negative count is followed by the bytes of the block.
        if (count < 0) number();
        for (let index = 0; index < Math.abs(count); index += 1) {
          spend();
          read();
        }
      }
    },
    isAtEnd: (): boolean => at === bytes.length,
  };
}

/** Above what a schema of Iceberg has. */
const maxDepth = 32;

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** Compiles a schema. Named types are those that it has defined before. */
function readerOf(root: AvroSchema, nameOf: (field: AvroField) => string): (cursor: Cursor) => AvroValue {
  type Reader = (cursor: Cursor) => AvroValue;
  const named = new Map<string, Reader>();
  const compile = (schema: AvroSchema, depth: number): Reader => {
    if (depth > maxDepth) throw new AvroError('Its schema is too deep.');
    if (typeof schema === 'string') {
      const known = primitives[schema] ?? named.get(schema);
      if (!known) throw new AvroError('Its schema has an unknown type.');
      return known;
    }
    if (Array.isArray(schema)) {
      const branches = (schema as readonly AvroSchema[]).map((branch) => compile(branch, depth + 1));
      return (cursor) => {
        const branch = branches[cursor.number()];
        if (!branch) throw new AvroError('A value has no type of its schema.');
        cursor.spend();
        return branch(cursor);
      };
    }
    // Another program wrote it.
    if (!isObject(schema)) throw new AvroError('Its schema has an unknown type.');
    const found = schema as Exclude<AvroSchema, string | readonly AvroSchema[]>;
    const define = (reader: Reader): Reader => {
      if (found.name !== undefined) named.set(found.name, reader);
      return reader;
    };
    switch (found.type) {
      case 'record': {
        if (!Array.isArray(found.fields)) throw new AvroError('Its schema has a record without fields.');
        const fields = (found.fields as readonly AvroField[]).map(
          (field) => [nameOf(field), compile(field.type, depth + 1)] as const,
        );
        return define((cursor) => {
          const record: Record<string, AvroValue> = {};
          for (const [name, read] of fields) {
            cursor.spend();
            record[name] = read(cursor);
          }
          return record;
        });
      }
      case 'array':
      case 'map': {
        const read = compile((found.type === 'array' ? found.items : found.values) ?? 'null', depth + 1);
        const isMap = found.type === 'map';
        return (cursor) => {
          const list: AvroValue[] = [];
          cursor.blocks(() =>
            list.push(isMap ? { key: cursor.sized().toString(), value: read(cursor) } : read(cursor)),
          );
          return list;
        };
      }
      case 'fixed': {
        const size = found.size ?? 0;
        return define((cursor) => cursor.take(size));
      }
      case 'enum':
        return define((cursor) => (found.symbols ?? [])[cursor.number()] ?? null);
      default:
        return compile(found.type, depth + 1);
    }
  };
  return compile(root, 0);
}

const primitives: Readonly<Record<string, (cursor: Cursor) => AvroValue>> = {
  null: () => null,
  boolean: (cursor) => cursor.take(1)[0] === 1,
  int: (cursor) => cursor.long(),
  long: (cursor) => cursor.long(),
  float: (cursor) => cursor.take(4).readFloatLE(),
  double: (cursor) => cursor.take(8).readDoubleLE(),
  bytes: (cursor) => cursor.sized(),
  string: (cursor) => cursor.sized().toString(),
};
