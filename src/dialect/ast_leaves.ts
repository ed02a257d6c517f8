// Nodes that contain no expression or query.

/** The position of a node in the query text, in UTF-16 code units: the first one and the one after the last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A node of a kind with its fields. */
export type NodeOf<Kind extends string, Members = unknown> = Span & {
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

export type Literal = NumberLiteral | StringLiteral | BooleanLiteral | NullLiteral | TimeLiteral;

/** Digits as written, in lower case (`1`, `0.5`, `1e10`, `0xff`), or `inf` or `nan`. Never signed. */
export type NumberLiteral = NodeOf<'number', { text: string }>;

export type StringLiteral = NodeOf<'string', { value: string }>;

export type BooleanLiteral = NodeOf<'boolean', { value: boolean }>;

export type NullLiteral = NodeOf<'null'>;

/** DATE '2026-11-21' or TIMESTAMP '2026-11-21 10:00:00'. The parser does not check the text. */
export type TimeLiteral = NodeOf<'time', { type: 'date' | 'timestamp'; text: string }>;

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%' | '||';

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
