/** PostgreSQL types of bound parameters. */
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

/** A bound parameter; its value is never part of the statement text. */
interface Parameter {
  readonly value: string;
  readonly type: BoundType;
}

type Part = string | Parameter;

/** An SQL fragment made of code constants, quoted names and bound values. It never contains user text. */
export class Sql {
  readonly parts: readonly Part[];
  /** Approximate length in characters. */
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

  /** Equal for fragments with the same text and bound values. */
  get key(): string {
    this.#key ??= this.parts
      .map((part) => (typeof part === 'string' ? part : `\0${part.type}\0${part.value}\0`))
      .join('');
    return this.#key;
  }
}

/** Tagged template that composes fragments. It accepts no strings, so user text cannot be injected. */
export function sql(texts: TemplateStringsArray, ...fragments: readonly Sql[]): Sql {
  const parts: Part[] = [];
  texts.forEach((text, index) => {
    parts.push(text);
    const fragment = fragments[index];
    if (fragment !== undefined) parts.push(...fragment.parts);
  });
  return new Sql(parts);
}

/** `count(distinct …)`, marked as such because grouped rows can compute it faster. */
export class DistinctCount extends Sql {
  readonly counted: Sql;

  constructor(counted: Sql) {
    super(sql`count(distinct ${counted})`.parts);
    this.counted = counted;
  }
}

/** Binds a value, given in the text format of its PostgreSQL type. */
export const bind = (value: string, type: BoundType): Sql => new Sql([{ value, type }]);

/** Raw SQL from the code, such as a function name of a table. Never pass user text. */
export const rawSql = (text: string): Sql => new Sql([text]);

/** A quoted identifier. */
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

/** Renders `$1`, `$2`, … and their values. Equal values share a parameter, so that equal expressions stay equal. */
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
