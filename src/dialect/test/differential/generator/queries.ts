import { tableColumns } from '../tables.ts';
import { ExpressionGenerator } from './expressions.ts';
import { type Atom, type GeneratedKind, type GeneratorScope, scalarKinds } from './kinds.ts';
import type { Random } from './random.ts';

interface GeneratedSource {
  readonly text: string;
  readonly atoms: readonly Atom[];
  /** The columns of rows that an outer join may not have matched. */
  readonly optional?: readonly Atom[];
}

interface GeneratedQuery {
  readonly text: string;
  readonly kinds: readonly GeneratedKind[];
}

const columnKinds: readonly GeneratedKind[] = [...scalarKinds, 'integers', 'strings', 'decimal'];

/** Generates queries that the dialect accepts and the reference interpreter knows. */
export class QueryGenerator {
  readonly #random: Random;
  readonly #expressions: ExpressionGenerator;
  #names = 0;
  #ctes: GeneratedSource[] = [];

  constructor(random: Random) {
    this.#random = random;
    this.#expressions = new ExpressionGenerator(random);
  }

  query(): string {
    return this.#query(2).text;
  }

  #query(depth: number): GeneratedQuery {
    const random = this.#random;
    const kinds = Array.from({ length: 1 + random.below(3) }, () => random.one(columnKinds));
    if (depth > 0 && random.oneIn(8)) {
      const operator = random.one([
        'UNION ALL',
        'UNION DISTINCT',
        'INTERSECT',
        'EXCEPT',
        'INTERSECT DISTINCT',
        'EXCEPT DISTINCT',
      ]);
      return {
        text: `${this.#select(depth - 1, kinds, false)} ${operator} ${this.#select(depth - 1, kinds, false)}`,
        kinds,
      };
    }
    if (depth > 1 && random.oneIn(10)) {
      const name = this.#name('named');
      const { text, kinds: columns } = this.#query(depth - 1);
      this.#ctes.push({ text: name, atoms: columns.map((kind, index) => ({ text: `v${index}`, kind })) });
      const select = this.#select(depth, kinds, true);
      this.#ctes = [];
      return { text: `WITH ${name} AS (${text}) ${select}`, kinds };
    }
    return { text: this.#select(depth, kinds, true), kinds };
  }

  #name(prefix: string): string {
    return `${prefix}_${this.#names++}`;
  }

  /** A SELECT with the columns `v0`, `v1`, … of these kinds. */
  #select(depth: number, kinds: readonly GeneratedKind[], mayLimit: boolean): string {
    const random = this.#random;
    const source = this.#from(depth);
    const atoms = [...source.atoms];
    let from = source.text;
    if (random.oneIn(8)) {
      const kind = random.one(['integers', 'strings'] as const);
      const item = this.#name('item');
      from += ` ${random.one(['', 'LEFT '])}ARRAY JOIN ${this.#of(kind, { atoms, hasWindows: false })} AS ${item}`;
      atoms.push({ text: item, kind: kind === 'integers' ? 'integer' : 'string' });
    }
    const subquery = depth > 0 ? this.#subqueries(depth - 1) : {};
    const rows: GeneratorScope = { atoms, hasWindows: false, ...subquery };
    const { optional = [] } = source;
    const isUnmatched = optional.length > 0 && random.oneIn(2);
    const where = isUnmatched
      ? ` WHERE ${this.#expressions.comparisonWithDefault({ atoms: optional, hasWindows: false })}`
      : random.oneIn(2)
        ? ` WHERE ${this.#of('boolean', rows)}`
        : '';
    const text = `${from}${where}`;
    return random.oneIn(2)
      ? this.#grouped(text, kinds, rows, mayLimit)
      : this.#plain(text, kinds, rows, mayLimit);
  }

  #plain(from: string, kinds: readonly GeneratedKind[], rows: GeneratorScope, mayLimit: boolean): string {
    const random = this.#random;
    const scope = { ...rows, hasWindows: random.oneIn(4) };
    const columns = kinds.map((kind, index) => `${this.#of(kind, scope)} AS v${index}`);
    const isDistinct = !scope.hasWindows && random.oneIn(5);
    const tail = mayLimit ? this.#tail(kinds, rows.atoms, isDistinct) : '';
    return `SELECT ${isDistinct ? 'DISTINCT ' : ''}${columns.join(', ')} ${from}${tail}`;
  }

  #grouped(from: string, kinds: readonly GeneratedKind[], rows: GeneratorScope, mayLimit: boolean): string {
    const random = this.#random;
    const keyKinds = random.some([...scalarKinds], random.oneIn(4) ? 0 : 1, 2);
    const single: GeneratorScope = { atoms: rows.atoms, hasWindows: false };
    const keys = keyKinds.map((kind): Atom => ({ text: this.#of(kind, single, 1), kind }));
    const columnKeys = keys.filter(
      ({ text }, index) =>
        keys.findIndex((key) => key.text === text) === index && /\b(?:t|q|item)_\d/.test(text),
    );
    const scope: GeneratorScope = {
      atoms: [...columnKeys, ...columnKeys],
      aggregated: rows.atoms,
      hasWindows: random.oneIn(8),
      ...(rows.subquery === undefined ? {} : { subquery: rows.subquery }),
    };
    const columns = kinds.map((kind, index) => `${this.#of(kind, scope)} AS v${index}`);
    if (columnKeys.length === 0) {
      const total = this.#expressions.aggregate('integer', 2, scope);
      const having = random.oneIn(4) ? ` HAVING ${this.#of('boolean', { ...scope, hasWindows: false })}` : '';
      return `SELECT ${kinds.map((kind, index) => `${this.#expressions.aggregate(kind, 2, scope)} AS v${index}`).join(', ')} ${from}${having === '' && kinds.length === 0 ? ` HAVING ${total} > 0` : having}`;
    }
    const having = random.oneIn(3) ? ` HAVING ${this.#of('boolean', { ...scope, hasWindows: false })}` : '';
    const texts = columnKeys.map((key) => key.text);
    const mode = random.below(10);
    const groupBy =
      mode === 0
        ? `ROLLUP(${texts.join(', ')})`
        : mode === 1
          ? `CUBE(${texts.join(', ')})`
          : mode === 2
            ? `GROUPING SETS ((${texts.join(', ')}), ())`
            : texts.join(', ');
    const tail = mayLimit ? this.#tail(kinds, columnKeys) : '';
    return `SELECT ${columns.join(', ')} ${from} GROUP BY ${groupBy}${having}${tail}`;
  }

  /** ORDER BY, LIMIT BY and LIMIT. */
  #tail(kinds: readonly GeneratedKind[], atoms: readonly Atom[], isDistinct = false): string {
    const random = this.#random;
    if (random.oneIn(2)) return '';
    const isSortable = (kind: GeneratedKind): boolean => kind !== 'integers' && kind !== 'strings';
    const columns = kinds.flatMap((kind, index) => (isSortable(kind) ? [`v${index}`] : []));
    const others = atoms.filter(({ kind }) => isSortable(kind)).map(({ text }) => text);
    const items = random.some([...columns, ...others], 1, columns.length + 1);
    if (items.length === 0) return '';
    const order = items.map(
      (item) =>
        `${item}${random.one(['', ' DESC', ' ASC'])}${random.oneIn(4) ? random.one([' NULLS FIRST', ' NULLS LAST']) : ''}`,
    );
    // Together with DISTINCT, LIMIT BY sorts by columns of SELECT alone.
    const mayLimitBy = columns.length > 0 && !(isDistinct && items.some((item) => others.includes(item)));
    const by = random.oneIn(6) && mayLimitBy ? ` LIMIT ${1 + random.below(2)} BY ${random.one(columns)}` : '';
    const limit = random.oneIn(2)
      ? ` LIMIT ${random.below(5)}${random.oneIn(3) ? ` OFFSET ${random.below(3)}` : ''}`
      : '';
    const ties =
      limit !== '' && !limit.includes('OFFSET') && !limit.includes(' 0') && random.oneIn(5)
        ? ' WITH TIES'
        : '';
    return ` ORDER BY ${order.join(', ')}${by}${limit}${ties}`;
  }

  #of(kind: GeneratedKind, scope: GeneratorScope, depth = 3): string {
    return this.#expressions.expression(kind, depth, scope);
  }

  #subqueries(depth: number): Pick<GeneratorScope, 'subquery'> {
    return {
      subquery: (kind, isScalar) => {
        if (!isScalar) return `(${this.#select(Math.min(depth, 0), [kind], false)})`;
        const { text, atoms } = this.#table();
        const scope: GeneratorScope = { atoms: [], aggregated: atoms, hasWindows: false };
        return `(SELECT ${this.#expressions.aggregate(kind, 1, scope)} FROM ${text})`;
      },
    };
  }

  #table(): GeneratedSource {
    const random = this.#random;
    const alias = this.#name('t');
    if (this.#ctes.length > 0 && random.oneIn(2)) {
      const { text, atoms } = random.one(this.#ctes);
      return { text: `${text} AS ${alias}`, atoms: qualified(alias, atoms) };
    }
    const name = random.one([...tableColumns.keys()]);
    const columns = [...(tableColumns.get(name) ?? [])];
    const atoms = columns.map(([column, { kind }]): Atom => ({ text: column, kind: kind as GeneratedKind }));
    return { text: `${name} AS ${alias}`, atoms: qualified(alias, atoms) };
  }

  #source(depth: number): GeneratedSource {
    if (depth <= 0 || !this.#random.oneIn(4)) return this.#table();
    const { text, kinds } = this.#query(depth - 1);
    const alias = this.#name('q');
    const atoms = kinds.map((kind, index): Atom => ({ text: `v${index}`, kind }));
    return { text: `(${text}) AS ${alias}`, atoms: qualified(alias, atoms) };
  }

  #from(depth: number): GeneratedSource {
    const random = this.#random;
    const first = this.#source(depth);
    if (!random.oneIn(3)) return { text: `FROM ${first.text}`, atoms: first.atoms };
    const joined = this.#joined(first, this.#source(depth - 1));
    const { text, ...columns } = random.oneIn(4) ? this.#joined(joined, this.#table()) : joined;
    return { text: `FROM ${text}`, ...columns };
  }

  #joined(first: GeneratedSource, second: GeneratedSource): GeneratedSource {
    const random = this.#random;
    const pairs = first.atoms.flatMap((left) =>
      second.atoms
        .filter((right) => right.kind === left.kind && left.kind !== 'integers' && left.kind !== 'strings')
        .map((right) => [left, right] as const),
    );
    const atoms = [...first.atoms, ...second.atoms];
    if (pairs.length === 0 || random.oneIn(10))
      return { text: `${first.text} CROSS JOIN ${second.text}`, atoms };
    const type = random.one([
      'INNER',
      'INNER',
      'LEFT',
      'LEFT',
      'LEFT',
      'RIGHT',
      'FULL',
      'LEFT SEMI',
      'LEFT ANTI',
      'RIGHT SEMI',
      'RIGHT ANTI',
      'LEFT ANY',
    ]);
    const [left, right] = random.one(pairs);
    const [a, b] = random.one(pairs);
    const isBoolean = (kind: GeneratedKind): boolean => kind === 'boolean' || kind === 'uuid';
    const more =
      random.oneIn(3) && !isBoolean(a.kind)
        ? ` AND ${a.text} ${random.one(['<', '>=', '!='])} ${b.text}`
        : '';
    const kept =
      type.startsWith('LEFT SEMI') || type.startsWith('LEFT ANTI')
        ? first.atoms
        : type.startsWith('RIGHT SEMI') || type.startsWith('RIGHT ANTI')
          ? second.atoms
          : atoms;
    const optional = [
      ...(/^(LEFT|LEFT ANY|FULL)$/.test(type) ? second.atoms : []),
      ...(/^(RIGHT|FULL)$/.test(type) ? first.atoms : (first.optional ?? [])),
    ];
    return {
      text: `${first.text} ${type} JOIN ${second.text} ON ${left.text} = ${right.text}${more}`,
      atoms: kept,
      optional: optional.filter((atom) => kept.includes(atom)),
    };
  }
}

const qualified = (alias: string, atoms: readonly Atom[]): readonly Atom[] =>
  atoms.map(({ text, kind }) => ({ text: `${alias}.${text}`, kind }));
