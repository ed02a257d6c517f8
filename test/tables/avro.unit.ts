import { describe, expect, it } from '@jest/globals';
import { deflateRawSync } from 'node:zlib';
import { type AvroSchema, decodeAvro, encodeAvro } from '../../src/tables/avro.ts';

const limits = { bytes: 1_000_000, values: 10_000 };
const schema: AvroSchema = {
  type: 'record',
  name: 'r',
  fields: [
    { name: 'id', type: 'long', 'field-id': 1 },
    { name: 'name', type: ['null', 'string'], 'field-id': 2 },
    { name: 'list', type: { type: 'array', items: 'bytes', 'element-id': 3 }, 'field-id': 4 },
    { name: 'is', type: 'boolean', 'field-id': 5 },
  ],
};

/** A zigzag number. */
const long = (value: bigint): Buffer => {
  const bytes: number[] = [];
  let rest = value << 1n;
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
};

/** A file of one block that another program could have written. */
const fileOf = (of: unknown, count: bigint, block: Buffer, codec = 'null'): Buffer => {
  const sized = (bytes: Buffer) => Buffer.concat([long(BigInt(bytes.length)), bytes]);
  const sync = Buffer.alloc(16, 7);
  return Buffer.concat([
    ...[Buffer.from('Obj\u0001'), long(2n)],
    ...[sized(Buffer.from('avro.schema')), sized(Buffer.from(JSON.stringify(of)))],
    ...[sized(Buffer.from('avro.codec')), sized(Buffer.from(codec)), long(0n), sync],
    ...[long(count), sized(block), sync],
  ]);
};

describe('an Avro file', () => {
  it('has the values that were written, with longs of 64 bits and the schema as it was given', () => {
    const records = [
      { id: 2n ** 62n + 1n, name: null, list: [Buffer.from('a'), Buffer.alloc(0)], is: true },
      { id: -(2n ** 63n), name: 'é', list: [], is: false },
      { id: -1, name: '', list: [], is: false },
    ];
    const file = encodeAvro(schema, { 'format-version': '2' }, records);
    const found = decodeAvro(file, limits);
    expect(found.records).toEqual(records);
    expect(found.metadata.get('format-version')).toBe('2');
    expect(JSON.parse(found.metadata.get('avro.schema') ?? '')).toEqual(schema);
    const named = decodeAvro(file, limits, ({ 'field-id': id }) => `f${id}`);
    expect(named.records[1]).toMatchObject({ f2: 'é', f5: false });
  });

  it.each([
    [
      'an array of values without bytes',
      { type: 'array', items: 'null' },
      1n,
      Buffer.concat([long(2n ** 40n), long(0n)]),
    ],
    ['more records than values are read', 'null', 2n ** 40n, Buffer.alloc(0)],
    ['a text that is longer than the file', 'string', 1n, long(2n ** 50n)],
    ['a length that is negative', 'bytes', 1n, Buffer.from([0x03])],
    ['a number without an end', 'long', 1n, Buffer.alloc(20, 0xff)],
    ['a type of no schema', ['null'], 1n, long(3n)],
    ['a schema with an unknown type', 'monkey', 1n, Buffer.alloc(0)],
  ])('that has %s is refused', (_, of, count, block) => {
    expect(() => decodeAvro(fileOf(of, count, block), limits)).toThrow(/^It |^Its |^A /);
  });

  it('that unpacks to more than is read, or is cut anywhere, is refused', () => {
    const bomb = deflateRawSync(Buffer.alloc(10_000_000));
    expect(() => decodeAvro(fileOf('null', 1n, bomb, 'deflate'), limits)).toThrow('too large');
    const file = encodeAvro(schema, {}, [{ id: 1, name: 'a', list: [], is: true }]);
    // Cut after its header it is a file without records.
    const header = encodeAvro(schema, {}, []).length;
    const lengths = Array.from({ length: file.length }, (_, length) => length);
    for (const length of lengths.filter((one) => one !== header))
      expect(() => decodeAvro(file.subarray(0, length), limits)).toThrow();
  });
});
