import type {
  NodeOf,
  Name,
  SetOperator,
  Literal,
  NumberLiteral,
  StringLiteral,
  TypeName,
  UsingConstraint,
  Table,
  ArithmeticOperator,
  ComparisonOperator,
} from './ast_leaves.ts';
import type { TimeUnit } from './keywords.ts';

export type * from './ast_leaves.ts';

export type Query = Select | SetOperation;

/** Queries joined from left to right by one operator; INTERSECT binds tighter than the others. */
export type SetOperation = NodeOf<
  'set_operation',
  {
    operator: SetOperator;
    /** At least two. */
    operands: readonly Query[];
    /** Of the whole, which only brackets round the last operand can say. */
    orderBy: readonly OrderItem[];
    limit: Limit | null;
  }
>;

export type Select = NodeOf<
  'select',
  {
    ctes: readonly Cte[];
    distinct: boolean;
    /** DISTINCT ON (…); empty without. */
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

/** `WITH expression AS name`: a name for an expression wherever the query uses it. */
export type ColumnCte = NodeOf<'column_cte', { expression: Expression; name: Name }>;

/** LEFT ARRAY JOIN keeps rows whose array is empty. */
export type ArrayJoin = NodeOf<'array_join', { left: boolean; items: readonly Expression[] }>;

export type GroupBy = NodeOf<
  'group_by',
  {
    /** `all` has no items: they are those of SELECT. */
    mode: 'plain' | 'all' | 'rollup' | 'cube' | 'grouping_sets';
    /** Of grouping sets each item is a set. */
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
    /** `LIMIT count PERCENT`: of all rows. */
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
    /** Null with a cross join only. */
    constraint: OnConstraint | UsingConstraint | null;
  }
>;

export type OnConstraint = NodeOf<'on', { condition: Expression }>;

export type Window = NodeOf<
  'window',
  {
    /** A named window that this one goes on from. */
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
    /** Null where only the first bound was said: up to the current row. */
    last: FrameBound | null;
  }
>;

export type FrameBound = NodeOf<
  'frame_bound',
  {
    direction: 'preceding' | 'current row' | 'following';
    /** Null means unbounded, and with the current row nothing. */
    offset: Expression | null;
  }
>;

export type Expression =
  Literal | Collection | Reference | Operation | KeywordExpression | Call | Alias | Subquery;

export type Collection = Template | ArrayItems | Tuple | Dictionary;
/** What names something that is there, or takes a part of a value. */
export type Reference = Field | Member | Element | Index | Slice | Star | Columns | Placeholder;
export type Operation =
  Unary | Arithmetic | Comparison | Logical | Nullish | IsNull | Between | Conditional | Lambda;
/** What is written with words rather than with brackets and symbols. */
export type KeywordExpression = Case | Cast | Interval | Extract | Trim;

/** `f'a {b}'`: texts and expressions; never two texts side by side, nor an empty one. */
export type Template = NodeOf<'template', { parts: readonly Expression[] }>;

export type ArrayItems = NodeOf<'array', { items: readonly Expression[] }>;

/** At least one item; an empty one is written `tuple()`. */
export type Tuple = NodeOf<'tuple', { items: readonly Expression[] }>;

export type Dictionary = NodeOf<'dictionary', { entries: readonly DictionaryEntry[] }>;

export type DictionaryEntry = NodeOf<'entry', { key: Expression; value: Expression }>;

/** `timestamp`, `e.person.properties.email`: at least one name; which part is what, resolving tells. */
export type Field = NodeOf<'field', { path: readonly Name[] }>;

/** `x[1].name`, `f(x).name`, `x?.name`. A plain one of a field is part of the field's path. */
export type Member = NodeOf<'member', { object: Expression; name: Name; nullish: boolean }>;

/** `t.1`: an element of a tuple, from one. */
export type Element = NodeOf<'element', { object: Expression; position: NumberLiteral }>;

/** `a[1]`, `properties['a b']`, `x?.[1]`. */
export type Index = NodeOf<'index', { object: Expression; index: Expression; nullish: boolean }>;

/** `a[2:3]`. */
export type Slice = NodeOf<'slice', { object: Expression; from: Expression | null; to: Expression | null }>;

/** `*`, `e.*`, `* EXCLUDE (a) REPLACE (b + 1 AS b)`. */
export type Star = NodeOf<
  'star',
  {
    /** Empty for a plain one. */
    table: readonly Name[];
    exclude: readonly Name[];
    replace: readonly Alias[];
  }
>;

/** `COLUMNS('pattern')`, without items; `COLUMNS(a, b)` and `COLUMNS(*)`, without a pattern. */
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

/** Two or more operands joined by the same word. */
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

/** A null subject means that each WHEN is a condition, otherwise what it is compared with. */
export type Case = NodeOf<
  'case',
  { subject: Expression | null; branches: readonly CaseBranch[]; otherwise: Expression | null }
>;

export type CaseBranch = NodeOf<'branch', { when: Expression; then: Expression }>;

/** CAST(x AS type) or `x::type`; `safe` is TRY_CAST, which gives null instead of an error. */
export type Cast = NodeOf<'cast', { operand: Expression; type: TypeName; safe: boolean }>;

export type Interval = NodeOf<'interval', { amount: Expression; unit: TimeUnit }>;

export type Extract = NodeOf<'extract', { unit: TimeUnit; operand: Expression }>;

/** TRIM(BOTH characters FROM operand); no characters mean white space. */
export type Trim = NodeOf<
  'trim',
  { side: 'both' | 'leading' | 'trailing'; characters: Expression | null; operand: Expression }
>;

export type Lambda = NodeOf<'lambda', { parameters: readonly Name[]; body: Expression }>;

export type Call = NodeOf<
  'call',
  {
    name: Name;
    /** `quantile(0.9)(x)`: what stands in the first brackets of two; null with one pair. */
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
