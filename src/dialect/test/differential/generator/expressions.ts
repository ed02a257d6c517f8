import { scalarFunctions } from '../reference/functions.ts';
import type { ArgumentKind } from '../reference/function_entry.ts';
import type { ReferenceKind } from '../reference/types.ts';
import { dates } from '../tables.ts';
import { aggregateCall } from './aggregates.ts';
import { type Atom, type GeneratedKind, type GeneratorScope, orderedKinds, scalarKinds } from './kinds.ts';
import { literalOf, quoted } from './literals.ts';
import type { Random } from './random.ts';
import { windowCall } from './windows.ts';

const units = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'];

const kindOf = (kind: ReferenceKind, item: ReferenceKind | undefined): GeneratedKind | undefined => {
  if (kind === 'array') return item === 'integer' ? 'integers' : item === 'string' ? 'strings' : undefined;
  return kind === 'interval' || kind === 'null' ? undefined : kind;
};

/** Generates well-typed expressions as text. */
export class ExpressionGenerator {
  readonly #random: Random;
  #parameters = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  expression(kind: GeneratedKind, depth: number, scope: GeneratorScope): string {
    const random = this.#random;
    if (depth <= 0 || random.oneIn(4)) return this.atom(kind, scope);
    const of = (inner: GeneratedKind): string => this.expression(inner, depth - 1, scope);
    const same = (): string => of(kind);
    const isScalar = kind !== 'integers' && kind !== 'strings';
    const choices: (() => string)[] = [
      () => this.#functionCall(kind, depth, scope),
      () => this.#functionCall(kind, depth, scope),
      () => `if(${of('boolean')}, ${same()}, ${same()})`,
      () => this.#ofKind(kind, depth, scope),
      () => this.#ofKind(kind, depth, scope),
    ];
    if (isScalar)
      choices.push(
        () => `coalesce(${same()}, ${same()})`,
        () => `(${same()} ?? ${same()})`,
        () => `nullIf(${same()}, ${same()})`,
        () => `multiIf(${of('boolean')}, ${same()}, ${of('boolean')}, ${same()}, ${same()})`,
        () => `CASE WHEN ${of('boolean')} THEN ${same()} ${random.oneIn(2) ? `ELSE ${same()} ` : ''}END`,
        () => this.#caseOf(same, depth, scope),
        () => (random.oneIn(3) ? `ifNull(${same()}, NULL)` : `ifNull(${same()}, ${same()})`),
      );
    if (scope.aggregated !== undefined)
      for (let times = 0; times < 4; times += 1) choices.push(() => this.aggregate(kind, depth, scope));
    if (scope.hasWindows) choices.push(() => this.#window(kind, depth, scope));
    const { subquery } = scope;
    if (subquery !== undefined && isScalar && random.oneIn(3)) choices.push(() => subquery(kind, true));
    return random.one(choices)();
  }

  /** A column of the kind, or a literal. */
  atom(kind: GeneratedKind, scope: GeneratorScope): string {
    const atoms = scope.atoms.filter((atom) => atom.kind === kind);
    if (atoms.length > 0 && !this.#random.oneIn(5)) return this.#random.one(atoms).text;
    return this.#literal(kind);
  }

  #caseOf(same: () => string, depth: number, scope: GeneratorScope): string {
    const kind = this.#random.one(orderedKinds);
    const of = (): string => this.expression(kind, depth - 1, scope);
    return `CASE ${of()} WHEN ${of()} THEN ${same()} WHEN ${of()} THEN ${same()} ELSE ${same()} END`;
  }

  /** Operators and syntax whose result has the kind. */
  #ofKind(kind: GeneratedKind, depth: number, scope: GeneratorScope): string {
    const random = this.#random;
    const of = (inner: GeneratedKind): string => this.expression(inner, depth - 1, scope);
    const sign = random.one(['+', '-']);
    switch (kind) {
      case 'integer':
        return random.one([
          () => `(${of('integer')} ${random.one(['+', '-', '*', '%'])} ${of('integer')})`,
          () => `(- ${of('integer')})`,
          () => `${of('integers')}[${of('integer')}]`,
          () => `(${of('date')} - ${of('date')})`,
          () => this.#arrayNumber(depth, scope),
        ])();
      case 'float':
        return random.one([
          () =>
            `(${of('float')} ${random.one(['+', '-', '*', '/'])} ${of(random.one(['float', 'integer']))})`,
          () => `(${of('integer')} / ${of('integer')})`,
          () => `(${of('datetime')} - ${of('datetime')})`,
          () => `(- ${of('float')})`,
          () => `arrayAvg(${of('integers')})`,
          () => `arrayAvg(${this.#lambda('strings', 'float', depth, scope)}, ${of('strings')})`,
        ])();
      case 'decimal':
        return `(${of('decimal')} ${sign} ${of(random.one(['decimal', 'integer']))})`;
      case 'string':
        return random.oneIn(2)
          ? `${of('strings')}[${of('integer')}]`
          : this.#functionCall(kind, depth, scope);
      case 'boolean':
        return this.#condition(depth, scope);
      case 'date':
        return `(${of('date')} ${sign} ${random.oneIn(2) ? this.#interval(['day', 'week', 'month', 'year']) : String(random.below(40))})`;
      case 'datetime':
        return random.oneIn(4)
          ? `(${of('date')} ${sign} ${this.#interval(['hour', 'minute', 'second'])})`
          : `(${of('datetime')} ${sign} ${this.#interval(units)})`;
      case 'uuid':
        return this.atom(kind, scope);
      case 'integers':
      case 'strings':
        return this.#array(kind, depth, scope);
    }
  }

  #interval(names: readonly string[]): string {
    const amount = this.#random.one(['1', '2', '3', '24', '36']);
    const unit = this.#random.one(names);
    if (this.#random.oneIn(3))
      return `toInterval${unit.slice(0, 1).toUpperCase()}${unit.slice(1)}(${amount})`;
    return this.#random.oneIn(6) ? `(- INTERVAL ${amount} ${unit})` : `INTERVAL ${amount} ${unit}`;
  }

  #condition(depth: number, scope: GeneratorScope): string {
    const random = this.#random;
    const kind = random.one(scalarKinds);
    const of = (inner: GeneratedKind): string => this.expression(inner, depth - 1, scope);
    const ordered = random.one(orderedKinds);
    const not = random.one(['', 'NOT ']);
    const choices: (() => string)[] = [
      () => `(${of(kind)} ${random.one(['=', '!='])} ${of(kind)})`,
      () => `(${of(ordered)} ${random.one(['=', '!=', '<', '<=', '>', '>='])} ${of(ordered)})`,
      () => `(${of('integer')} ${random.one(['=', '<', '>='])} ${of(random.one(['float', 'decimal']))})`,
      () => `(${of('datetime')} ${random.one(['<', '>=', '='])} ${of('date')})`,
      () =>
        `(${of(random.one(['date', 'datetime']))} ${random.one(['<', '>=', '=', '!='])} '${random.one(dates)}')`,
      () => `(${of('boolean')} ${random.one(['AND', 'OR'])} ${of('boolean')})`,
      () => `(NOT ${of('boolean')})`,
      () => `(${of(kind)} IS ${not}NULL)`,
      () => `(${of(kind)} ${random.one(['=', '!='])} NULL)`,
      () => `(${of(ordered)} ${not}BETWEEN ${of(ordered)} AND ${of(ordered)})`,
      () => `(${of(kind)} ${not}IN (${this.#candidates(kind, depth, scope)}))`,
      () => `(${of('integer')} ${not}IN ${of('integers')})`,
      () => this.#like(depth, scope),
      () => this.comparisonWithDefault(scope),
      () => this.#arrayCondition(depth, scope),
    ];
    const { subquery } = scope;
    if (subquery !== undefined) choices.push(() => `(${of(kind)} ${not}IN ${subquery(kind, false)})`);
    return random.one(choices)();
  }

  /** LIKE with a pattern that may be null or come from rows. */
  #like(depth: number, scope: GeneratorScope): string {
    const random = this.#random;
    const of = (kind: GeneratedKind): string => this.expression(kind, depth - 1, scope);
    const literal = quoted(random.one(['%a%', '_', 'a%', '', '%', 'A_', '%é']));
    const pattern = random.one([
      literal,
      literal,
      literal,
      'NULL',
      `nullIf(${literal}, ${of('string')})`,
      of('string'),
    ]);
    const value = random.oneIn(8) ? 'NULL' : of('string');
    return `(${value} ${random.one(['', 'NOT '])}${random.one(['LIKE', 'ILIKE'])} ${pattern})`;
  }

  /** A column compared with what ClickHouse has in rows that an outer join did not match. */
  comparisonWithDefault(scope: GeneratorScope): string {
    const random = this.#random;
    const kind = random.one(['string', 'string', 'integer', 'float', 'boolean'] as const);
    const column = this.atom(kind, scope);
    if (kind === 'string' && random.oneIn(2)) return `${random.one(['empty', 'notEmpty'])}(${column})`;
    const missing =
      kind === 'string' ? "''" : kind === 'boolean' ? 'false' : random.one(['0', '0.0', '(1 - 1)']);
    return `(${column} ${random.one(['=', '!='])} ${missing})`;
  }

  #candidates(kind: GeneratedKind, depth: number, scope: GeneratorScope): string {
    const random = this.#random;
    const items = Array.from({ length: 2 + random.below(3) }, () =>
      random.oneIn(6)
        ? 'NULL'
        : random.oneIn(3)
          ? this.expression(kind, depth - 2, scope)
          : this.#literal(kind),
    );
    return items.join(', ');
  }

  #lambda(
    kind: 'integers' | 'strings',
    returns: GeneratedKind,
    depth: number,
    scope: GeneratorScope,
  ): string {
    const name = `x${this.#parameters++}`;
    const item: Atom = { text: name, kind: kind === 'integers' ? 'integer' : 'string' };
    const { atoms } = scope;
    const inner: GeneratorScope = { atoms: [...atoms, item, item, item], hasWindows: false };
    return `${name} -> ${this.expression(returns, depth - 1, inner)}`;
  }

  #arrayCondition(depth: number, scope: GeneratorScope): string {
    const kind = this.#random.one(['integers', 'strings'] as const);
    const name = this.#random.one(['arrayExists', 'arrayAll']);
    return `${name}(${this.#lambda(kind, 'boolean', depth, scope)}, ${this.expression(kind, depth - 1, scope)})`;
  }

  #arrayNumber(depth: number, scope: GeneratorScope): string {
    const random = this.#random;
    const kind = random.one(['integers', 'strings'] as const);
    const array = this.expression(kind, depth - 1, scope);
    return random.one([
      () => `arrayCount(${this.#lambda(kind, 'boolean', depth, scope)}, ${array})`,
      () =>
        `${random.one(['arrayFirst', 'arrayLast'])}(${this.#lambda('integers', 'boolean', depth, scope)}, ${this.expression('integers', depth - 1, scope)})`,
      () => `arrayFirstIndex(${this.#lambda(kind, 'boolean', depth, scope)}, ${array})`,
      () => `arraySum(${this.#lambda(kind, 'integer', depth, scope)}, ${array})`,
      () =>
        `${random.one(['arraySum', 'arrayMin', 'arrayMax'])}(${this.expression('integers', depth - 1, scope)})`,
    ])();
  }

  #array(kind: 'integers' | 'strings', depth: number, scope: GeneratorScope): string {
    const random = this.#random;
    const item: GeneratedKind = kind === 'integers' ? 'integer' : 'string';
    const from = random.one(['integers', 'strings'] as const);
    return random.one([
      () => `[${this.expression(item, depth - 1, scope)}, ${this.expression(item, depth - 1, scope)}]`,
      () => `arrayMap(${this.#lambda(from, item, depth, scope)}, ${this.expression(from, depth - 1, scope)})`,
      () =>
        `arrayFilter(${this.#lambda(kind, 'boolean', depth, scope)}, ${this.expression(kind, depth - 1, scope)})`,
    ])();
  }

  #functionCall(kind: GeneratedKind, depth: number, scope: GeneratorScope): string {
    const entries = scalarFunctions.filter(({ returns }) => {
      if (returns === 'T') return kind !== 'integers' && kind !== 'strings';
      if (returns === 'array(T)') return kind === 'integers' || kind === 'strings';
      return kindOf(returns.kind, returns.item?.kind) === kind;
    });
    if (entries.length === 0) return this.#ofKind(kind, depth, scope);
    const { name, takes, returns } = this.#random.one(entries);
    const bound: GeneratedKind =
      returns === 'T'
        ? kind === 'boolean' || kind === 'uuid'
          ? 'integer'
          : kind
        : returns === 'array(T)'
          ? kind === 'integers'
            ? 'integer'
            : 'string'
          : this.#random.one(['integer', 'string']);
    if (returns === 'T' && bound !== kind) return this.#ofKind(kind, depth, scope);
    const values = takes.map((argument) => this.#argument(argument, bound, depth, scope));
    return `${name}(${values.join(', ')})`;
  }

  #argument(argument: ArgumentKind, bound: GeneratedKind, depth: number, scope: GeneratorScope): string {
    const of = (kind: GeneratedKind): string => this.expression(kind, depth - 1, scope);
    switch (argument) {
      case 'small':
        return String(this.#random.below(5));
      case 'text':
        return this.#literal('string');
      case 'unit':
        return `'${this.#random.one(units)}'`;
      case 'T':
        return of(bound);
      case 'array(T)':
        return of(bound === 'string' ? 'strings' : 'integers');
      case 'array(integer)':
        return of('integers');
      case 'array(string)':
        return of('strings');
      default:
        return of(argument);
    }
  }

  /** An aggregate whose result has the kind. */
  aggregate(kind: GeneratedKind, depth: number, scope: GeneratorScope): string {
    const rows: GeneratorScope = { atoms: scope.aggregated ?? [], hasWindows: false };
    return aggregateCall(kind, this.#random, (inner) => this.expression(inner, Math.min(depth - 1, 2), rows));
  }

  #window(kind: GeneratedKind, depth: number, scope: GeneratorScope): string {
    if (kind === 'integers' || kind === 'strings') return this.atom(kind, scope);
    const inner: GeneratorScope = { ...scope, hasWindows: false };
    return windowCall(kind, this.#random, scope.atoms, (one) =>
      this.expression(one, Math.min(depth - 1, 1), inner),
    );
  }

  #literal(kind: GeneratedKind): string {
    return literalOf(kind, this.#random);
  }
}
