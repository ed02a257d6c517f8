// Expressions, and the windows that calls have.

import type {
  ArithmeticOperator,
  ComparisonOperator,
  Literal,
  Name,
  NodeOf,
  NumberLiteral,
  StringLiteral,
  TypeName,
} from './ast_leaves.ts';
import type { OrderItem, Query } from './ast_queries.ts';
import type { TimeUnit } from './keywords.ts';

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

export type Collection = Template | ArrayItems | Tuple | Dictionary;
/** Expressions that name something or access a part of a value. */
export type Reference = Field | Member | Element | Index | Slice | Star | Columns | Placeholder;
export type Operation =
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
export type KeywordExpression = Case | Cast | Interval | Extract | Trim;

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
