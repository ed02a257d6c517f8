/** SQL for reproducible random values: the same seed, row and purpose give the same value on any machine. */
export interface SeededRandom {
  /** A whole number, at least 0. */
  integer(row: string, purpose: string): string;
  /** A whole number from 0 to `limit` - 1. */
  integerBelow(row: string, purpose: string, limit: number): string;
  /** One of some texts, each with the same probability. */
  oneOf(row: string, purpose: string, texts: readonly string[]): string;
  /** The JSON text of one of some values, each with the same probability. */
  oneOfJson(row: string, purpose: string, values: readonly unknown[]): string;
  /** A number from 0 to 1. */
  fraction(row: string, purpose: string): string;
  /** A UUID of version 4. */
  uuid(row: string, purpose: string): string;
}

/** A text as an SQL literal. */
export const sqlLiteral = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** A small number for a purpose, which makes values of different purposes independent. */
const hashOf = (purpose: string): number =>
  Buffer.from(purpose).reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 7);

const maxBigint = 2n ** 63n - 1n;

/** @param seed A whole number. */
export function createSeededRandom(seed: number): SeededRandom {
  const integer = (row: string, purpose: string) =>
    `(hashint8extended((${row})::bigint, ${String(seed * 1_000_003 + hashOf(purpose))}) & ${String(maxBigint)})`;
  const integerBelow = (row: string, purpose: string, limit: number) =>
    `(${integer(row, purpose)} % ${String(limit)})`;
  const oneOf = (row: string, purpose: string, texts: readonly string[]) =>
    `(array[${texts.map(sqlLiteral).join(', ')}])[1 + ${integerBelow(row, purpose, texts.length)}]`;
  const oneOfJson = (row: string, purpose: string, values: readonly unknown[]) =>
    oneOf(
      row,
      purpose,
      values.map((value) => JSON.stringify(value)),
    );
  const fraction = (row: string, purpose: string) => `(${integerBelow(row, purpose, 1_000_000)} / 1000000.0)`;
  const uuid = (row: string, purpose: string) =>
    `overlay(overlay(md5('${String(seed)} ${purpose} ' || (${row})) placing '4' from 13) placing 'a' from 17)::uuid`;
  return { integer, integerBelow, oneOf, oneOfJson, fraction, uuid };
}

// JSON is concatenated as text and parsed once. jsonb_build_object looks up the type of every argument for every row,
// which made the demo data take three times as long.

/** SQL for the text of a constant JSON value. */
export const json = (value: unknown): string => sqlLiteral(JSON.stringify(value));

/** SQL for the text of a JSON string. `text` must have no quotes, backslashes and control characters. */
export const jsonString = (text: string): string => `'"' || ${text} || '"'`;

/** SQL for the text of a JSON number. */
export const jsonNumber = (number: string): string => `(${number})::text`;

/** SQL for the fields of an object without its braces, from SQL for the text of each value. */
export const jsonFields = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(
      ([name, value], position) =>
        `${sqlLiteral(`${position === 0 ? '' : ','}${JSON.stringify(name)}:`)} || ${value}`,
    )
    .join(' || ');

/** SQL for the text of an object, from SQL for the text of each value. */
export const jsonObject = (fields: Readonly<Record<string, string>>): string =>
  `'{' || ${jsonFields(fields)} || '}'`;
