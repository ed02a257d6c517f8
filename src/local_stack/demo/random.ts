/** A way to draw reproducible values inside SQL: the same seed, row and purpose give the same value, on any machine. */
export interface Dice {
  /** A whole number from 0 on, for a row's key and a purpose. */
  roll(row: string, purpose: string): string;
  /** A whole number from 0 to `sides` - 1. */
  below(row: string, purpose: string, sides: number): string;
  /** One of some texts, all as likely. */
  oneOf(row: string, purpose: string, texts: readonly string[]): string;
  /** The JSON text of one of some values, all as likely. */
  oneOfJson(row: string, purpose: string, values: readonly unknown[]): string;
  /** A number from 0 to 1. */
  fraction(row: string, purpose: string): string;
  /** A UUID of version 4. */
  uuid(row: string, purpose: string): string;
}

/** A text as a literal of SQL. */
export const sqlText = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** A small number for a purpose, so that purposes do not influence each other. */
const numberOf = (purpose: string): number =>
  Buffer.from(purpose).reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 7);

const largest = 2n ** 63n - 1n;

/** Makes dice from a seed, a whole number. */
export function createDice(seed: number): Dice {
  const roll = (row: string, purpose: string) =>
    `(hashint8extended((${row})::bigint, ${String(seed * 1_000_003 + numberOf(purpose))}) & ${String(largest)})`;
  const below = (row: string, purpose: string, sides: number) => `(${roll(row, purpose)} % ${String(sides)})`;
  const oneOf = (row: string, purpose: string, texts: readonly string[]) =>
    `(array[${texts.map(sqlText).join(', ')}])[1 + ${below(row, purpose, texts.length)}]`;
  const oneOfJson = (row: string, purpose: string, values: readonly unknown[]) =>
    oneOf(
      row,
      purpose,
      values.map((value) => JSON.stringify(value)),
    );
  const fraction = (row: string, purpose: string) => `(${below(row, purpose, 1_000_000)} / 1000000.0)`;
  const uuid = (row: string, purpose: string) =>
    `overlay(overlay(md5('${String(seed)} ${purpose} ' || (${row})) placing '4' from 13) placing 'a' from 17)::uuid`;
  return { roll, below, oneOf, oneOfJson, fraction, uuid };
}
