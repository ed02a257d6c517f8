/** The types of PostgreSQL that values are bound as. */
export type BoundType =
  | 'text'
  | 'int4'
  | 'int8'
  | 'float8'
  | 'numeric'
  | 'bool'
  | 'date'
  | 'timestamptz'
  | 'uuid'
  | 'jsonb'
  | 'text[]'
  | 'int8[]'
  | 'float8[]'
  | 'uuid[]'
  | 'timestamptz[]';

/** A value that is sent beside the statement and never written into it. */
interface Parameter {
  readonly value: string;
  readonly type: BoundType;
}

type Part = string | Parameter;

/** A piece of a statement: exportd's own text, quoted names and bound values; never a user's text. */
export class Sql {
  readonly parts: readonly Part[];
  /** Characters, roughly. */
  readonly size: number;
  #key: string | undefined;

  constructor(parts: readonly Part[]) {
    const mergedParts: Part[] = [];
    let size = 0;
    for (const part of parts) {
      const last = mergedParts.at(-1);
      if (typeof part === 'string' && typeof last === 'string')
        mergedParts[mergedParts.length - 1] = last + part;
      else mergedParts.push(part);
      size += typeof part === 'string' ? part.length : 8;
    }
    this.parts = mergedParts;
    this.size = size;
  }

  /** Equal for pieces that are written alike and bind equal values. */
  get key(): string {
    this.#key ??= this.parts
      .map((part) => (typeof part === 'string' ? part : `\0${part.type}\0${part.value}\0`))
      .join('');
    return this.#key;
  }
}

/** Writes a piece with others in it. */
export function sql(texts: TemplateStringsArray, ...fragments: readonly Sql[]): Sql {
  const parts: Part[] = [];
  texts.forEach((text, index) => {
    parts.push(text);
    const fragment = fragments[index];
    if (fragment !== undefined) parts.push(...fragment.parts);
  });
  return new Sql(parts);
}

/** `count(distinct …)` of all rows of a group, known as such since there is a quicker way to ask for it. */
export class DistinctCount extends Sql {
  readonly counted: Sql;

  constructor(counted: Sql) {
    super(sql`count(distinct ${counted})`.parts);
    this.counted = counted;
  }
}

/** A value, as text that PostgreSQL reads as `type`. */
export const bind = (value: string, type: BoundType): Sql => new Sql([{ value, type }]);

/** Text that exportd itself wrote, such as the name of a function from a table in the code; never a user's. */
export const rawSql = (text: string): Sql => new Sql([text]);

/** A name in quotes. */
export const identifier = (name: string): Sql => new Sql([`"${name.replaceAll('"', '""')}"`]);

export function joinSql(fragments: readonly Sql[], separator: string): Sql {
  const parts: Part[] = [];
  fragments.forEach((fragment, index) => {
    if (index > 0) parts.push(separator);
    parts.push(...fragment.parts);
  });
  return new Sql(parts);
}

export const commaList = (fragments: readonly Sql[]): Sql => joinSql(fragments, ', ');

/** A statement and the values of its `$1`, `$2`, …; equal values share one, so that equal expressions stay equal. */
export function renderSql(fragment: Sql): { readonly text: string; readonly parameters: readonly string[] } {
  const numbers = new Map<string, number>();
  const parameters: string[] = [];
  const text = fragment.parts.map((part) => {
    if (typeof part === 'string') return part;
    const key = `${part.type}\0${part.value}`;
    let number = numbers.get(key);
    if (number === undefined) {
      parameters.push(part.value);
      number = parameters.length;
      numbers.set(key, number);
    }
    return `$${number}::${part.type}`;
  });
  return { text: text.join(''), parameters };
}
