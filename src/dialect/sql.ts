/** PostgreSQL types of bound parameters. */
type BoundType =
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

/** A name that `renderSql` assigns; every use of the same object gets the same name. */
interface GeneratedName {
  readonly base: string;
}

type Part = string | Parameter | GeneratedName | Sql;

const isParameter = (part: Parameter | GeneratedName): part is Parameter => 'value' in part;

/**
 * An SQL fragment made of code constants, quoted names, bound values and other fragments. It never contains user text. A
 * fragment refers to those it is made of, so composing costs the same at any length. Only `renderSql` reads their text.
 */
export class Sql {
  readonly parts: readonly Part[];
  /** Approximate length in characters. A fragment that is used twice counts twice. */
  readonly length: number;

  constructor(parts: readonly Part[]) {
    let length = 0;
    for (const part of parts)
      length += typeof part === 'string' || part instanceof Sql ? part.length : parameterLength;
    this.parts = parts;
    this.length = length;
  }

  /** Whether it renders to nothing. */
  get isEmpty(): boolean {
    return this.length === 0;
  }
}

const parameterLength = 8;

/** Tagged template that composes fragments. It accepts no strings, so user text cannot be injected. */
export function sql(texts: TemplateStringsArray, ...fragments: readonly Sql[]): Sql {
  const parts: Part[] = [];
  texts.forEach((text, index) => {
    if (text !== '') parts.push(text);
    const fragment = fragments[index];
    if (fragment !== undefined) parts.push(fragment);
  });
  return new Sql(parts);
}

/** The number of rows, marked by its identity. */
export const rowCount: Sql = sql`count(*)`;

/** `count(distinct …)`, marked as such because grouped rows can compute it faster. */
export class DistinctCount extends Sql {
  readonly counted: Sql;

  constructor(counted: Sql) {
    super(sql`count(distinct ${counted})`.parts);
    this.counted = counted;
  }
}

/** The fragment with other fragments in place of some that it is made of. */
export function replaceFragments(fragment: Sql, replacement: (fragment: Sql) => Sql | undefined): Sql {
  const replaced = replacement(fragment);
  if (replaced !== undefined) return replaced;
  const parts = fragment.parts.map((part) =>
    part instanceof Sql ? replaceFragments(part, replacement) : part,
  );
  return parts.every((part, index) => part === fragment.parts[index]) ? fragment : new Sql(parts);
}

/** Binds a value, given in the text format of its PostgreSQL type. */
export const bind = (value: string, type: BoundType): Sql => new Sql([{ value, type }]);

/** Raw SQL from the code, such as a function name of a table. Never pass user text. */
export const rawSql = (text: string): Sql => new Sql([text]);

/** A quoted identifier. */
export const identifier = (name: string): Sql => new Sql([`"${name.replaceAll('"', '""')}"`]);

/** A name that no other part of the statement has. It starts with `$`, as no name of a query does. */
export const generatedName = (base: string): Sql => new Sql([{ base }]);

export function joinSql(fragments: readonly Sql[], separator: string): Sql {
  const parts: Part[] = [];
  fragments.forEach((fragment, index) => {
    if (index > 0) parts.push(separator);
    parts.push(fragment);
  });
  return new Sql(parts);
}

export const commaList = (fragments: readonly Sql[]): Sql => joinSql(fragments, ', ');

/** Visits the leaves of a fragment in order. It keeps its own stack, because fragments can nest deeply. */
function visitLeaves(fragment: Sql, visit: (leaf: string | Parameter | GeneratedName) => void): void {
  const pending: Part[] = [fragment];
  for (let part = pending.pop(); part !== undefined; part = pending.pop())
    if (part instanceof Sql)
      for (let index = part.parts.length - 1; index >= 0; index -= 1) {
        const inner = part.parts[index];
        if (inner !== undefined) pending.push(inner);
      }
    else visit(part);
}

/** Renders `$1`, `$2`, … and their values. Equal values share a parameter, so that equal expressions stay equal. */
export function renderSql(fragment: Sql): { readonly text: string; readonly parameters: readonly string[] } {
  const numbers = new Map<string, number>();
  const parameters: string[] = [];
  const text = renderWith(fragment, ({ value, type }) => {
    const key = `${type}\0${value}`;
    let number = numbers.get(key);
    if (number === undefined) {
      parameters.push(value);
      number = parameters.length;
      numbers.set(key, number);
    }
    return `$${number}::${type}`;
  });
  return { text, parameters };
}

/** Renders a fragment whose values `bound` turns into SQL. */
export function renderWith(fragment: Sql, bound: (parameter: Parameter) => string): string {
  const names = new Map<GeneratedName, string>();
  const texts: string[] = [];
  visitLeaves(fragment, (leaf) => {
    if (typeof leaf === 'string') texts.push(leaf);
    else if (isParameter(leaf)) texts.push(bound(leaf));
    else {
      const name = names.get(leaf) ?? `"$${leaf.base}${names.size + 1}"`;
      names.set(leaf, name);
      texts.push(name);
    }
  });
  return texts.join('');
}
