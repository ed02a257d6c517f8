import fc, { type GeneratorValue } from 'fast-check';

interface Tables {
  readonly alias: string;
  readonly columns: readonly string[];
}

interface Source extends Tables {
  readonly from: string;
}

const tables: Readonly<Record<string, readonly string[]>> = {
  events: [
    'event',
    'distinct_id',
    'properties.plan',
    'person.properties.email',
    'session.$entry_current_url',
    'pdi.person.properties.email',
    '$session_id',
    'poe.properties.email',
    'group_0.properties.plan',
    'group_1.key',
  ],
  persons: ['properties.email', "properties['email']"],
  person_distinct_ids: ['distinct_id', 'person.properties.email'],
  sessions: ['session_id', '$entry_current_url', 'distinct_id'],
  session_replay_events: ['session_id', 'first_url', 'person.properties.email'],
  groups: ['key', 'properties.plan'],
  'warehouse.orders': ['distinct_id'],
  plans: ['name'],
};

/** Maximum nesting depth of queries. */
const outermost = 2;

/** Tables that do not support SAMPLE. */
const unsampled = ['groups', 'warehouse.orders', 'plans'];

const joins = [
  'LEFT',
  'INNER',
  'RIGHT',
  'FULL',
  'LEFT SEMI',
  'RIGHT SEMI',
  'LEFT ANTI',
  'RIGHT ANTI',
  'LEFT ANY',
  'RIGHT ANY',
  'INNER ANY',
  'LEFT ASOF',
  'INNER ASOF',
];

/**
 * Generates random queries over all tables that compile: joins, subqueries, aliases, unions, groups, lambdas,
 * windows, arrays.
 */
export class RandomQueries {
  readonly #draw: GeneratorValue;
  #aliases = 0;

  constructor(draw: GeneratorValue) {
    this.#draw = draw;
  }

  /** A query with string columns called `v0`, `v1`, …. */
  query(depth = outermost): string {
    const kind = this.#draw(fc.integer, { min: 0, max: 9 });
    if (depth > 0 && kind === 0) {
      const word = this.#draw(
        fc.constantFrom<string[]>,
        'UNION ALL',
        'UNION DISTINCT',
        'INTERSECT',
        'EXCEPT',
      );
      return `${this.select(depth - 1, 1)} ${word} ${this.select(depth - 1, 1)}`;
    }
    if (depth > 0 && kind === 1) {
      const name = `named_${this.#aliases++}`;
      return `WITH ${name} AS (${this.select(depth - 1, 1)}) SELECT a.v0 FROM ${name} AS a LEFT JOIN ${name} AS b ON a.v0 = b.v0 LIMIT 1000`;
    }
    return this.select(depth, 2);
  }

  select(depth: number, width: number): string {
    const first = this.#source(depth);
    const second = this.#maybe(3) ? this.#source(depth) : undefined;
    const columns = [first, second].flatMap((from) =>
      from === undefined ? [] : from.columns.map((name) => `${from.alias}.${name}`),
    );
    const isGrouped = this.#maybe(3);
    const chosen = Array.from({ length: width }, () =>
      !isGrouped && this.#maybe(5) ? this.#window(columns) : this.#text(this.#one(columns), depth),
    );
    const join = second === undefined ? '' : this.#join(first, second);
    const where = this.#maybe(2) ? ` WHERE ${this.#condition(columns, depth)}` : '';
    const array = this.#maybe(4)
      ? ` ${this.#one(['', 'LEFT '])}ARRAY JOIN splitByChar('a', coalesce(${this.#one(columns)}, '')) AS item`
      : '';
    if (array !== '') chosen.push('item');
    const rows = `${first.from}${join}${array}${where}`;
    const named = chosen
      .slice(-width)
      .map((text, index) => `${text} AS v${index}`)
      .join(', ');
    const sorted = this.#maybe(4) ? ` ORDER BY ${this.#one(columns)}` : '';
    const tail = this.#maybe(4)
      ? ` LIMIT 3 BY v0 LIMIT 1000`
      : this.#one([' LIMIT 1000', ' LIMIT 50 PERCENT']);
    if (!isGrouped) return `SELECT ${named} FROM ${rows}${sorted}${tail}`;
    const aggregate = this.#one(['max', 'min', 'any', 'argMax', 'maxOrNull']);
    const values = chosen
      .slice(-width)
      .map((text) => (aggregate === 'argMax' ? `argMax(${text}, ${text})` : `${aggregate}(${text})`));
    const grouped = values.map((text, index) => `${text} AS v${index}`).join(', ');
    const totals = depth === outermost && this.#maybe(3) ? ' WITH TOTALS' : '';
    const having = totals !== '' && this.#maybe(2) ? ' HAVING count() > 1' : '';
    return `SELECT ${grouped} FROM ${rows} GROUP BY ${this.#one(columns)}${totals}${having}${tail}`;
  }

  #source(depth: number): Source {
    const alias = `t${this.#aliases++}`;
    if (depth > 0 && this.#maybe(4))
      return { alias, columns: ['v0'], from: `(${this.query(depth - 1)}) AS ${alias}` };
    const name = this.#one(Object.keys(tables));
    const sample =
      !unsampled.includes(name) && this.#maybe(4)
        ? this.#one([' SAMPLE 1/10', ' SAMPLE 0.5 OFFSET 1/4'])
        : '';
    return { alias, columns: tables[name] ?? [], from: `${name} AS ${alias}${sample}` };
  }

  #join(first: Tables, second: Source): string {
    const of = ({ alias, columns }: Tables): string => `${alias}.${this.#one(columns)}`;
    const kind = this.#one(joins);
    const equal = `${of(first)} = ${of(second)}`;
    // INNER ANY requires a single equality, ASOF an inequality.
    const isOrdered = kind.endsWith('ASOF') || (kind !== 'INNER ANY' && this.#maybe(4));
    const more = isOrdered ? ` AND ${of(first)} ${this.#one(['<', '>='])} ${of(second)}` : '';
    return ` ${kind} JOIN ${second.from} ON ${equal}${more}`;
  }

  #text(column: string, depth: number): string {
    const other = depth > 0 ? `(SELECT max(v0) FROM (${this.select(0, 1)}))` : `'none'`;
    return this.#one([
      column,
      `coalesce(${column}, ${other})`,
      `concat(${column}, '-')`,
      `if(${column} = 'a', ${column}, 'b')`,
      `arrayMap(x -> concat(x, ${column}), ['p', 'q'])[1]`,
      `CASE WHEN ${column} IS NULL THEN 'null' ELSE ${column} END`,
    ]);
  }

  /** A window function of a column, nested in other functions. */
  #window(columns: readonly string[]): string {
    const [column, by] = [this.#one(columns), this.#one(columns)];
    return this.#one([
      `last_value(${column}) OVER (ORDER BY ${by})`,
      `lag(${column}) OVER (PARTITION BY ${by} ORDER BY ${column})`,
      `arrayStringConcat(groupArray(${column}) OVER (PARTITION BY ${by}), ',')`,
      `arrayMap(x -> concat(x, ${column}), groupUniqArray(${column}) OVER (PARTITION BY ${by}))[1]`,
    ]);
  }

  #condition(columns: readonly string[], depth: number): string {
    const column = this.#one(columns);
    const inner = depth > 0 ? `(${this.select(0, 1)})` : `('a', 'b', NULL)`;
    return this.#one([
      `${column} = 'a' OR 1 = 1`,
      `${column} != ${this.#one(columns)}`,
      `${column} IN ${inner}`,
      `${column} NOT IN ${inner}`,
      `NOT (${column} LIKE '%a%')`,
      `${column} IS NULL OR true`,
    ]);
  }

  #one(choices: readonly string[]): string {
    return this.#draw(fc.constantFrom<string[]>, ...choices);
  }

  #maybe(oneIn: number): boolean {
    return this.#draw(fc.integer, { min: 1, max: oneIn }) === 1;
  }
}
