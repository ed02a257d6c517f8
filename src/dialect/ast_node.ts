import type {
  ArrayJoin,
  CaseBranch,
  Cte,
  DictionaryEntry,
  Expression,
  Fill,
  Frame,
  FrameBound,
  From,
  GroupBy,
  GroupingSet,
  Limit,
  LimitBy,
  Name,
  NamedType,
  NamedWindow,
  OnConstraint,
  OrderItem,
  Query,
  Ratio,
  Sample,
  TypeName,
  UsingConstraint,
  Window,
} from './ast.ts';

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
