import { type Expression, type Field, findNodes, type Node, type Query, type Window } from '../ast.ts';
import { DialectError, type QueryText } from '../query_text.ts';
import type { Schema } from '../schema.ts';
import { bind, identifier, renderSql, type Sql, sql } from '../sql.ts';
import { TimeZone, type Type, zoneOf } from '../types.ts';
import type { TypedQuery, Value } from './value.ts';

/** Aliases that WITH gives to expressions. */
interface WithExpressions {
  readonly expressions: ReadonlyMap<string, Expression>;
  readonly outer: WithExpressions | null;
}

/** The names that expressions of a SELECT can read besides columns. */
interface AliasNames {
  readonly aliases: ReadonlyMap<string, Expression>;
  readonly windows: ReadonlyMap<string, Window>;
  readonly ctes: WithExpressions | null;
}

/** All named windows together. Each call may name one, so every expression counts as reading them. */
const windowsNode = Symbol('windows');
type GraphNode = Expression | typeof windowsNode;

/** Which aliases the expressions of a SELECT read. Building it takes time linear in their text. */
class AliasGraph {
  readonly names: AliasNames;
  readonly #reads = new Map<GraphNode, ReadonlySet<GraphNode>>();
  readonly #readsWith = new Set<GraphNode>();
  readonly #cyclic: ReadonlySet<GraphNode>;

  constructor(names: AliasNames) {
    this.names = names;
    this.#add(windowsNode, [...names.windows.values()]);
    for (const expression of new Set(names.aliases.values())) this.#add(expression, [expression]);
    const readers = reversed(this.#reads);
    const pending = [...this.#readsWith];
    for (let node = pending.pop(); node !== undefined; node = pending.pop())
      for (const reader of readers.get(node) ?? [])
        if (!this.#readsWith.has(reader)) {
          this.#readsWith.add(reader);
          pending.push(reader);
        }
    this.#cyclic = withoutEnds(withoutEnds(new Set(this.#reads.keys()), readers), this.#reads);
  }

  /**
   * Whether an expression means the same regardless of which aliases are being expanded: it reads neither itself nor an
   * alias of WITH, directly or indirectly.
   */
  isContextFree(expression: Expression): boolean {
    if (!this.#reads.has(expression)) this.#add(expression, [expression]);
    const reads = [...(this.#reads.get(expression) ?? [])];
    return (
      !this.#cyclic.has(expression) &&
      !this.#readsWith.has(expression) &&
      !reads.some((read) => this.#readsWith.has(read))
    );
  }

  #add(node: GraphNode, trees: readonly Node[]): void {
    const reads = new Set<GraphNode>(node === windowsNode ? [] : [windowsNode]);
    for (const { path } of trees.flatMap((tree) => findNodes(tree, isField))) {
      const name = path[0]?.text ?? '';
      if (isWithName(name, this.names.ctes)) this.#readsWith.add(node);
      const alias = this.names.aliases.get(name);
      if (alias !== undefined) reads.add(alias);
    }
    this.#reads.set(node, reads);
  }
}

const isField = (node: Node): node is Field => node.kind === 'field';

function isWithName(name: string, ctes: WithExpressions | null): boolean {
  for (let one = ctes; one !== null; one = one.outer) if (one.expressions.has(name)) return true;
  return false;
}

type Edges = ReadonlyMap<GraphNode, ReadonlySet<GraphNode>>;

function reversed(edges: Edges): Edges {
  const found = new Map<GraphNode, Set<GraphNode>>();
  for (const [from, targets] of edges)
    for (const to of targets) {
      const sources = found.get(to) ?? new Set();
      sources.add(from);
      found.set(to, sources);
    }
  return found;
}

/**
 * Removes nodes that no remaining node leads to, again and again. Applied in both directions, the nodes of cycles remain,
 * and those between two cycles.
 * @param successors the edges in the direction of removal
 */
function withoutEnds(nodes: ReadonlySet<GraphNode>, successors: Edges): ReadonlySet<GraphNode> {
  const remaining = new Set(nodes);
  const incoming = new Map<GraphNode, number>();
  for (const node of nodes)
    for (const next of successors.get(node) ?? []) incoming.set(next, (incoming.get(next) ?? 0) + 1);
  const pending = [...nodes].filter((node) => !incoming.has(node));
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    remaining.delete(node);
    for (const next of successors.get(node) ?? []) {
      const count = (incoming.get(next) ?? 0) - 1;
      incoming.set(next, count);
      if (count === 0 && remaining.has(next)) pending.push(next);
    }
  }
  return remaining;
}

/**
 * The fields of a scope that this cache reads by name; scopes are compared by all of their fields. It is declared apart
 * from Scope, because a scope refers to the statement, which refers to this cache.
 */
interface AliasScope extends AliasNames {
  readonly expandingAliases: readonly Expression[];
  readonly windowSubquery?: object | undefined;
}

interface CachedValue {
  readonly scope: AliasScope;
  readonly value: Value;
}

/**
 * Caches compiled aliases of SELECT, once for each scope in which they mean the same. Without it, an alias that
 * reads other aliases would be compiled once for every path that leads to it.
 */
class AliasCache {
  readonly #cached = new Map<Expression, CachedValue[]>();
  readonly #graphs = new WeakMap<AliasScope['aliases'], AliasGraph>();

  /** The value of an aliased expression in the scope where it is expanded; `compile` computes it on a miss. */
  getOrCompile(expression: Expression, scope: AliasScope, compile: () => Value): Value {
    if (!this.#graphOf(scope).isContextFree(expression)) return compile();
    const cached = this.#cached.get(expression) ?? [];
    const found = cached.find((one) => isSameScope(one.scope, scope));
    if (found !== undefined) return found.value;
    const value = compile();
    this.#cached.set(expression, [...cached, { scope, value }]);
    return value;
  }

  #graphOf(scope: AliasScope): AliasGraph {
    const known = this.#graphs.get(scope.aliases);
    if (known?.names.windows === scope.windows && known.names.ctes === scope.ctes) return known;
    const graph = new AliasGraph(scope);
    this.#graphs.set(scope.aliases, graph);
    return graph;
  }
}

/** Whether all names mean the same in both scopes, ignoring which aliases are being expanded. */
const isSameScope = (one: AliasScope, other: AliasScope): boolean =>
  one.windowSubquery === other.windowSubquery &&
  (Object.keys(other) as (keyof AliasScope)[]).every(
    (name) => name === 'expandingAliases' || one[name] === other[name],
  );

/** The project of a query and what the query may read. */
export interface Project {
  readonly teamId: number;
  /** IANA name. Dates and times are in this zone. */
  readonly timezone: string;
  readonly weekStartDay: 'sunday' | 'monday';
  /** ISO 8601. The value of `now()` throughout the query. */
  readonly now: string;
  readonly schema: Schema;
  /** What `matchesAction()` can name; undefined where no action can be used. */
  readonly actions?: readonly NamedCondition[];
}

/** A condition on events that a project has named. */
export interface NamedCondition {
  readonly id: number;
  readonly name: string;
  /** Its fields are columns of events. */
  readonly condition: () => Expression;
}

/** Maximum length of an SQL fragment in characters. Nested aliases can multiply. */
const maxFragmentLength = 1_000_000;

interface NamedColumn {
  readonly name: string;
  readonly type: Type;
}

/** A CTE at the start of the statement. */
export interface CommonTable {
  readonly typed: TypedQuery;
  readonly name: Sql;
  readonly columns: readonly NamedColumn[];
  /** The number of tables that it joins. */
  readonly tableCount: number;
}

interface CompiledSubquery {
  readonly typed: TypedQuery;
  readonly number: number;
  readonly sql: Sql;
  readonly columns: readonly NamedColumn[];
  readonly alias: Sql;
  readonly tableCount: number;
}

/** Maximum levels of expressions through their aliases. The parser limits those of the text; more would exhaust the stack. */
const maxNestedExpressions = 500;

/** Maximum number of alias expansions in a statement. */
const maxAliasExpansions = 20_000;

/**
 * A statement that runs before a query's own, which is compiled again with the rows that it returns: ids, of which there are
 * few or too many to use.
 */
export interface Search {
  readonly sql: string;
  readonly parameters: readonly string[];
  /** How many rows to read. */
  readonly maxRows: number;
}

/** The rows of searches by their statement and parameters. */
export type Found = ReadonlyMap<string, readonly (string | null)[]>;

/** What identifies a search in each compilation of a query. */
export const searchKey = ({ sql, parameters }: Pick<Search, 'sql' | 'parameters'>): string =>
  JSON.stringify([sql, parameters]);

/** With more persons, reading all events is as fast. */
const maxFound = 1_000;

/** State shared by all parts of one statement. */
export class Statement {
  readonly project: Project;
  readonly queryText: QueryText;
  /** The searches that it did not find the rows of. */
  readonly searches: Search[] = [];
  readonly #found: Found;
  /** CTEs, hoisted to the start of the statement; each may use earlier ones. */
  readonly commonTables: { readonly name: Sql; readonly query: Sql }[] = [];
  /** Compiled CTEs by their trees. */
  readonly compiledCtes = new Map<Query, CommonTable>();
  /** Compiled subqueries of expressions, by CTE scope and canonical text. */
  readonly subqueries = new Map<object | null, Map<string, CompiledSubquery>>();
  readonly aliasCache = new AliasCache();
  #expansions = 0;
  #numbers = 0;
  #depth = 0;
  readonly #names = new Map<string, number>();

  constructor(project: Project, queryText: QueryText, found: Found = new Map()) {
    this.project = project;
    this.queryText = queryText;
    this.#found = found;
  }

  /** The ids that a query returns; null if it was not run before, found too many, or also found that none is needed. */
  search(query: Sql): readonly string[] | null {
    const { text, parameters } = renderSql(sql`${query} limit ${bind(String(maxFound + 1), 'int8')}`);
    const search = { sql: text, parameters, maxRows: maxFound + 1 };
    const rows = this.#found.get(searchKey(search));
    if (rows === undefined) this.searches.push(search);
    const ids = rows?.filter((id) => id !== null);
    return ids === undefined || ids.length < (rows?.length ?? 0) || ids.length > maxFound ? null : ids;
  }

  get team(): Sql {
    return bind(String(this.project.teamId), 'int4');
  }

  get timezone(): TimeZone {
    return new TimeZone(this.project.timezone);
  }

  /** The time zone of a type, or the project's. */
  zoneOf(type: Type): TimeZone {
    return new TimeZone(zoneOf(type) ?? this.project.timezone);
  }

  get now(): Sql {
    return bind(this.project.now, 'timestamptz');
  }

  /**
   * A relation alias that is unique in the statement. A user's name never contains the `$`, and neither does a name that
   * the compiler writes itself, so none can capture another.
   */
  uniqueName(base: string): Sql {
    const plain = base
      .replaceAll(/[^a-z0-9_]/gi, '_')
      .toLowerCase()
      .slice(0, 40);
    const count = (this.#names.get(plain) ?? 0) + 1;
    this.#names.set(plain, count);
    return identifier(`${plain}$${count}`);
  }

  /** A number that nothing else in the statement has. */
  nextNumber(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  /** Adds a CTE to the statement, which is computed once however often it is read. */
  commonTable(base: string, query: Sql): Sql {
    const name = this.uniqueName(base);
    this.commonTables.push({ name, query });
    return name;
  }

  error(summary: string, at: Node, suggestion: string | null = null): DialectError {
    const summaryWithPeriod = suggestion === null || /[.!?]$/.test(summary) ? summary : `${summary}.`;
    return new DialectError(this.queryText, summaryWithPeriod, { start: at.start, end: at.end, suggestion });
  }

  /** Counts a level of expressions, until `leaveExpression`. @throws DialectError if there are too many */
  enterExpression(at: Node): void {
    this.#depth += 1;
    if (this.#depth > maxNestedExpressions)
      throw this.error(
        'The aliases of this query nest too deeply.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }

  leaveExpression(): void {
    this.#depth -= 1;
  }

  /** @throws DialectError if aliases are expanded too often */
  countAliasExpansion(at: Node): void {
    this.#expansions += 1;
    if (this.#expansions > maxAliasExpansions)
      throw this.error(
        'This query expands to too much SQL.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }

  /** @throws DialectError if a fragment is too long */
  checkLength(fragment: Sql, at: Node): void {
    if (fragment.length > maxFragmentLength)
      throw this.error(
        'This query expands to too much SQL.',
        at,
        'Use fewer aliases that refer to each other.',
      );
  }
}
