import type { TimeUnit } from './query_text.ts';

// The AST of the dialect: queries contain expressions, and expressions contain queries.

/** The position of a node in the query text, in UTF-16 code units: the first one and the one after the last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A node of a kind with its fields. */
type NodeOf<Kind extends string, Members = unknown> = Span & {
  readonly kind: Kind;
} & Readonly<Members>;

/** A name without its quotes. */
export type Name = NodeOf<'name', { text: string }>;

export type SetOperator =
  | 'union all'
  | 'union distinct'
  | 'intersect all'
  | 'intersect distinct'
  | 'except all'
  | 'except distinct';

export type Table = NodeOf<
  'table',
  {
    /** `events` or `warehouse.orders`: the parts between the dots. */
    path: readonly Name[];
    alias: Name | null;
    final: boolean;
    sample: Sample | null;
  }
>;

export type UsingConstraint = NodeOf<'using', { columns: readonly Name[] }>;

/** SAMPLE ratio [OFFSET ratio]. */
export type Sample = NodeOf<'sample', { ratio: Ratio; offset: Ratio | null }>;

/** `0.1`, `1/10`. */
export type Ratio = NodeOf<'ratio', { numerator: NumberLiteral; denominator: NumberLiteral | null }>;

type Literal = NumberLiteral | StringLiteral | BooleanLiteral | NullLiteral | TimeLiteral;

/** Digits as written, in lower case (`1`, `0.5`, `1e10`, `0xff`), or `inf` or `nan`. Never signed. */
export type NumberLiteral = NodeOf<'number', { text: string }>;

export type StringLiteral = NodeOf<'string', { value: string }>;

export type BooleanLiteral = NodeOf<'boolean', { value: boolean }>;

export type NullLiteral = NodeOf<'null'>;

/** DATE '2026-11-21' or TIMESTAMP '2026-11-21 10:00:00'. The parser does not check the text. */
export type TimeLiteral = NodeOf<'time', { type: 'date' | 'timestamp'; text: string }>;

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%';

export type ComparisonOperator =
  | '='
  | '!='
  | '<'
  | '<='
  | '>'
  | '>='
  | 'like'
  | 'not like'
  | 'ilike'
  | 'not ilike'
  | '=~'
  | '!~'
  | '=~*'
  | '!~*'
  | 'in'
  | 'not in'
  | 'global in'
  | 'global not in'
  | 'in cohort'
  | 'not in cohort'
  | 'is distinct from'
  | 'is not distinct from';

/** `Int64`, `Array(Nullable(String))`, `Decimal(10, 2)`, `Tuple(a String, b Int64)`. */
export type TypeName = NodeOf<
  'type',
  { name: Name; arguments: readonly (TypeName | NamedType | NumberLiteral | StringLiteral)[] }
>;

export type NamedType = NodeOf<'named_type', { name: Name; type: TypeName }>;

// Queries and their clauses.

export type Query = Select | SetOperation;

/** Queries combined left to right by one operator. INTERSECT binds tighter than the others. */
export type SetOperation = NodeOf<
  'set_operation',
  {
    operator: SetOperator;
    /** At least two. */
    operands: readonly Query[];
    /** Applies to the whole set operation. The text must put the last operand in parentheses. */
    orderBy: readonly OrderItem[];
    limit: Limit | null;
  }
>;

export type Select = NodeOf<
  'select',
  {
    ctes: readonly Cte[];
    distinct: boolean;
    /** Expressions of DISTINCT ON; empty without it. */
    distinctOn: readonly Expression[];
    columns: readonly Expression[];
    from: From | null;
    arrayJoin: ArrayJoin | null;
    prewhere: Expression | null;
    where: Expression | null;
    groupBy: GroupBy | null;
    having: Expression | null;
    qualify: Expression | null;
    windows: readonly NamedWindow[];
    orderBy: readonly OrderItem[];
    limitBy: LimitBy | null;
    limit: Limit | null;
  }
>;

export type Cte = QueryCte | ColumnCte;

/** `WITH name AS (SELECT …)`. */
export type QueryCte = NodeOf<'query_cte', { name: Name; query: Query }>;

/** `WITH expression AS name`: an alias for an expression throughout the query. */
export type ColumnCte = NodeOf<'column_cte', { expression: Expression; name: Name }>;

/** LEFT ARRAY JOIN keeps rows whose array is empty. */
export type ArrayJoin = NodeOf<'array_join', { left: boolean; items: readonly Expression[] }>;

export type GroupBy = NodeOf<
  'group_by',
  {
    /** `all` has no items: the keys come from SELECT. */
    mode: 'plain' | 'all' | 'rollup' | 'cube' | 'grouping_sets';
    /** With grouping sets, each item is a set. */
    items: readonly (Expression | GroupingSet)[];
    withTotals: boolean;
  }
>;

export type GroupingSet = NodeOf<'grouping_set', { items: readonly Expression[] }>;

export type NamedWindow = NodeOf<'named_window', { name: Name; window: Window }>;

export type OrderItem = NodeOf<
  'order_item',
  { expression: Expression; descending: boolean; nulls: 'first' | 'last' | null; fill: Fill | null }
>;

/** WITH FILL [FROM …] [TO …] [STEP …]. */
export type Fill = NodeOf<
  'fill',
  { from: Expression | null; to: Expression | null; step: Expression | null }
>;

/** LIMIT count [OFFSET offset] BY expressions. */
export type LimitBy = NodeOf<
  'limit_by',
  { count: Expression; offset: Expression | null; by: readonly Expression[] }
>;

/** LIMIT, OFFSET or both. */
export type Limit = NodeOf<
  'limit',
  {
    count: Expression | null;
    /** `LIMIT count PERCENT`: `count` is a percentage of all rows. */
    percent: boolean;
    offset: Expression | null;
    withTies: boolean;
  }
>;

export type From = Table | TableFunction | DerivedTable | Join;

export type TableFunction = NodeOf<
  'table_function',
  { name: Name; arguments: readonly Expression[]; alias: Name | null }
>;

export type DerivedTable = NodeOf<'derived_table', { query: Query; alias: Name | null }>;

export type Join = NodeOf<
  'join',
  {
    type: 'inner' | 'left' | 'right' | 'full' | 'cross';
    strictness: 'any' | 'all' | 'asof' | 'semi' | 'anti' | null;
    left: From;
    right: From;
    /** Null only for a cross join. */
    constraint: OnConstraint | UsingConstraint | null;
  }
>;

export type OnConstraint = NodeOf<'on', { condition: Expression }>;

// Expressions, and the windows that calls have.

export type Window = NodeOf<
  'window',
  {
    /** The named window that this one extends. */
    base: Name | null;
    partitionBy: readonly Expression[];
    orderBy: readonly OrderItem[];
    frame: Frame | null;
  }
>;

export type Frame = NodeOf<
  'frame',
  {
    unit: 'rows' | 'range' | 'groups';
    first: FrameBound;
    /** Null when only the first bound is given; the frame then ends at the current row. */
    last: FrameBound | null;
  }
>;

export type FrameBound = NodeOf<
  'frame_bound',
  {
    direction: 'preceding' | 'current row' | 'following';
    /** Null means unbounded. Always null for the current row. */
    offset: Expression | null;
  }
>;

export type Expression =
  | Literal
  | Collection
  | Reference
  | Operation
  | KeywordExpression
  | Call
  | Alias
  | Subquery;

type Collection = Template | ArrayItems | Tuple | Dictionary;
/** Expressions that name something or access a part of a value. */
type Reference = Field | Member | Element | Index | Slice | Star | Columns | Placeholder;
type Operation =
  | Unary
  | Arithmetic
  | Comparison
  | Logical
  | Nullish
  | IsNull
  | Between
  | Conditional
  | Lambda;
/** Expressions written with keywords rather than operators. */
type KeywordExpression = Case | Cast | Interval | Extract | Trim;

/** `f'a {b}'`: strings and expressions. There are no empty strings and no two adjacent ones. */
export type Template = NodeOf<'template', { parts: readonly Expression[] }>;

export type ArrayItems = NodeOf<'array', { items: readonly Expression[] }>;

/** At least one item; an empty one is written `tuple()`. */
export type Tuple = NodeOf<'tuple', { items: readonly Expression[] }>;

export type Dictionary = NodeOf<'dictionary', { entries: readonly DictionaryEntry[] }>;

export type DictionaryEntry = NodeOf<'entry', { key: Expression; value: Expression }>;

/** `timestamp`, `e.person.properties.email`: at least one name. The resolver decides what each name refers to. */
export type Field = NodeOf<'field', { path: readonly Name[] }>;

/** `x[1].name`, `f(x).name`, `x?.name`. A plain `.name` after a field is part of the field's path. */
export type Member = NodeOf<'member', { object: Expression; name: Name; nullish: boolean }>;

/** `t.1`: an element of a tuple, counted from 1. */
export type Element = NodeOf<'element', { object: Expression; position: NumberLiteral }>;

/** `a[1]`, `properties['a b']`, `x?.[1]`. */
export type Index = NodeOf<'index', { object: Expression; index: Expression; nullish: boolean }>;

/** `a[2:3]`. */
export type Slice = NodeOf<'slice', { object: Expression; from: Expression | null; to: Expression | null }>;

/** `*`, `e.*`, `* EXCLUDE (a) REPLACE (b + 1 AS b)`. */
export type Star = NodeOf<
  'star',
  {
    /** Empty for a plain `*`. */
    table: readonly Name[];
    exclude: readonly Name[];
    replace: readonly Alias[];
  }
>;

/** `COLUMNS('pattern')` has no items; `COLUMNS(a, b)` and `COLUMNS(*)` have no pattern. */
export type Columns = NodeOf<'columns', { pattern: StringLiteral | null; items: readonly Expression[] }>;

export type Unary = NodeOf<'unary', { operator: 'not' | '-'; operand: Expression }>;

export type Arithmetic = NodeOf<
  'arithmetic',
  { operator: ArithmeticOperator; left: Expression; right: Expression }
>;

export type Comparison = NodeOf<
  'comparison',
  { operator: ComparisonOperator; left: Expression; right: Expression }
>;

/** Two or more operands combined by the same operator. */
export type Logical = NodeOf<'logical', { operator: 'and' | 'or'; operands: readonly Expression[] }>;

/** `a ?? b`. */
export type Nullish = NodeOf<'nullish', { left: Expression; right: Expression }>;

export type IsNull = NodeOf<'is_null', { operand: Expression; negated: boolean }>;

export type Between = NodeOf<
  'between',
  { operand: Expression; low: Expression; high: Expression; negated: boolean }
>;

/** `condition ? then : otherwise`. */
export type Conditional = NodeOf<
  'conditional',
  { condition: Expression; then: Expression; otherwise: Expression }
>;

/** Without a subject each WHEN is a condition; with one it is a value that the subject is compared with. */
export type Case = NodeOf<
  'case',
  { subject: Expression | null; branches: readonly CaseBranch[]; otherwise: Expression | null }
>;

export type CaseBranch = NodeOf<'branch', { when: Expression; then: Expression }>;

/** CAST(x AS type) or `x::type`. `safe` is TRY_CAST, which returns null instead of failing. */
export type Cast = NodeOf<'cast', { operand: Expression; type: TypeName; safe: boolean }>;

export type Interval = NodeOf<'interval', { amount: Expression; unit: TimeUnit }>;

export type Extract = NodeOf<'extract', { unit: TimeUnit; operand: Expression }>;

/** TRIM(BOTH characters FROM operand). Null characters mean spaces. */
export type Trim = NodeOf<
  'trim',
  { side: 'both' | 'leading' | 'trailing'; characters: Expression | null; operand: Expression }
>;

export type Lambda = NodeOf<'lambda', { parameters: readonly Name[]; body: Expression }>;

export type Call = NodeOf<
  'call',
  {
    name: Name;
    /** `quantile(0.9)(x)`: the arguments in the first of two pairs of parentheses; null with one pair. */
    parameters: readonly Expression[] | null;
    distinct: boolean;
    arguments: readonly Expression[];
    /** `array_agg(x ORDER BY y)`. */
    orderBy: readonly OrderItem[];
    nulls: 'ignore' | 'respect' | null;
    filter: Expression | null;
    /** OVER (…) or OVER name. */
    over: Window | Name | null;
  }
>;

export type Alias = NodeOf<'alias', { expression: Expression; name: Name }>;

export type Subquery = NodeOf<'subquery', { query: Query }>;

/** `{filters}`, `{variables.x}`, `{name}`. */
export type Placeholder = NodeOf<'placeholder', { expression: Expression }>;

/** Any AST node. */
export type Node =
  | Name
  | Query
  | Cte
  | ArrayJoin
  | GroupBy
  | GroupingSet
  | NamedWindow
  | OrderItem
  | Fill
  | LimitBy
  | Limit
  | From
  | OnConstraint
  | UsingConstraint
  | Sample
  | Ratio
  | Window
  | Frame
  | FrameBound
  | Expression
  | DictionaryEntry
  | CaseBranch
  | TypeName
  | NamedType;

/** The direct children of a node, in source order. */
export function childrenOf(node: Node): readonly Node[] {
  const children: Node[] = [];
  visitChildren(node, (child) => children.push(child));
  return children;
}

/** Queries have ten thousands of nodes, which are visited several times: it makes no arrays of fields. */
function visitChildren(node: Node, visit: (child: Node) => void): void {
  for (const name in node) {
    const field: unknown = node[name as keyof Node];
    if (typeof field !== 'object' || field === null) continue;
    if (Array.isArray(field)) {
      for (const item of field) if (isNode(item)) visit(item);
    } else if (isNode(field)) visit(field);
  }
}

/** Callbacks of a walk. */
interface Visitor {
  /** Called before the children; return `false` to skip them. */
  readonly enter?: (node: Node, parents: readonly Node[]) => boolean | undefined;
  /** Called after the children. */
  readonly leave?: (node: Node, parents: readonly Node[]) => void;
}

/** Visits every node depth-first. `parents` are the ancestors, root first. */
export function walk(root: Node, visitor: Visitor): void {
  const parents: Node[] = [];
  const visit = (node: Node): void => {
    if (visitor.enter?.(node, parents) !== false) {
      parents.push(node);
      visitChildren(node, visit);
      parents.pop();
    }
    visitor.leave?.(node, parents);
  };
  visit(root);
}

/** All nodes of a tree that match a predicate. */
export function findNodes<Found extends Node>(
  root: Node,
  test: (node: Node) => node is Found,
): readonly Found[] {
  const found: Found[] = [];
  walk(root, {
    enter: (node) => {
      if (test(node)) found.push(node);
      return true;
    },
  });
  return found;
}

/**
 * Rebuilds a tree bottom-up. `change` receives each node with its new children and returns its replacement, whose
 * kind must be allowed there. Unchanged subtrees keep their identity.
 */
export function transform(root: Node, change: (node: Node) => Node): Node {
  return change(withChildren(root, (child) => transform(child, change)));
}

function withChildren(node: Node, replace: (child: Node) => Node): Node {
  let changed: Record<string, unknown> | undefined;
  for (const name in node) {
    const field: unknown = node[name as keyof Node];
    if (typeof field !== 'object' || field === null) continue;
    const next = Array.isArray(field) ? replaceItems(field, replace) : isNode(field) ? replace(field) : field;
    if (next === field) continue;
    changed ??= { ...node };
    changed[name] = next;
  }
  return (changed as Node | undefined) ?? node;
}

function replaceItems(items: readonly unknown[], replace: (child: Node) => Node): readonly unknown[] {
  const next = items.map((item) => (isNode(item) ? replace(item) : item));
  return next.every((item, index) => item === items[index]) ? items : next;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'kind' in value && 'start' in value;
