import { epochDays, epochShift } from '../../../src/encoding/parquet/field_index.ts';
import type { ColumnType } from '../../../src/source/row_selection.ts';
import { int32, int64, type FieldBytes } from '../copy_block.ts';

/** A value in binary COPY, and its text in a reader. */
export interface Sample {
  readonly bytes: Buffer;
  readonly text: string;
}

export const sampleOf = {
  uuid: (text: string): Sample => ({ bytes: Buffer.from(text.replaceAll('-', ''), 'hex'), text }),
  text: (text: string): Sample => ({ bytes: Buffer.from(text), text }),
  json: (text: string): Sample => ({ bytes: Buffer.from(text), text }),
  jsonb: (text: string): Sample => ({ bytes: Buffer.from(`\u0001${text}`), text }),
  /** In microseconds since 1970. */
  timestamp: (microseconds: bigint): Sample => ({
    bytes: int64(microseconds - BigInt(epochShift)),
    text: String(microseconds),
  }),
  bigint: (value: bigint): Sample => ({ bytes: int64(value), text: String(value) }),
  integer: (value: number): Sample => ({ bytes: int32(value), text: String(value) }),
  /** In days since 1970. */
  date: (days: number): Sample => ({ bytes: int32(days - epochDays), text: String(days) }),
  double: (value: number): Sample => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return { bytes, text: String(value) };
  },
  boolean: (value: boolean): Sample => ({ bytes: Buffer.from([value ? 1 : 0]), text: String(value) }),
};

const largestLong = 2n ** 63n - 1n;
/** Microseconds since 1970. */
export const times = {
  year1: -62_135_596_800_000_000n,
  year9999: 253_402_300_799_999_999n,
};

/** Binary COPY of infinite times. */
export const infinity = int64(largestLong);
export const minusInfinity = int64(-largestLong - 1n);

/** Values of each type, including the limits of its range. */
export const samples: Record<ColumnType, readonly Sample[]> = {
  uuid: [
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '01234567-89ab-cdef-0123-456789abcdef',
  ].map(sampleOf.uuid),
  text: [
    '',
    'a',
    ' \t\r\n"\\',
    '\u0001\u007f',
    'a\u2028b\u2029c',
    '😀 é \ufeff',
    'null',
    'x'.repeat(100),
  ].map(sampleOf.text),
  json: [
    ...['{}', 'null', '""', ' [1,\r\n 1e400, -0] ', '12345678901234567890.10'].map(sampleOf.json),
    ...['{"__proto__": {"a": 1}, "constructor": 1}', '{"a": "\u2028"}', '{"a": 9007199254740993}'].map(
      sampleOf.jsonb,
    ),
    sampleOf.jsonb(`${'{"a": ['.repeat(1_000)}1${']}'.repeat(1_000)}`),
  ],
  timestamp: [...Object.values(times), 0n, -1n, 1n, BigInt(epochShift)].map(sampleOf.timestamp),
  bigint: [0n, -1n, 9_007_199_254_740_993n, -9_007_199_254_740_993n, largestLong, -largestLong - 1n].map(
    sampleOf.bigint,
  ),
  integer: [0, -1, 1, 2 ** 31 - 1, -(2 ** 31)].map(sampleOf.integer),
  date: [0, -1, 1, 20_000, -719_162, 2_932_896].map(sampleOf.date),
  double: [0, -1.5, 0.1, 1e300, -5e-324, Infinity, -Infinity, NaN].map(sampleOf.double),
  boolean: [true, false, false].map(sampleOf.boolean),
};

export type SampleRow = readonly (Sample | null)[];

export const bytesOf = (row: SampleRow): FieldBytes[] => row.map((sample) => sample?.bytes ?? null);
export const textsOf = (row: SampleRow): (string | null)[] => row.map((sample) => sample?.text ?? null);
