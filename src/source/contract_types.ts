/** The PostgreSQL types of the contract, as the catalog writes them. */
export type ContractType =
  | 'integer'
  | 'bigint'
  | 'uuid'
  | 'text'
  | 'boolean'
  | 'jsonb'
  | 'timestamp with time zone';

/** A column that exports read. */
export interface ContractColumn {
  readonly name: string;
  readonly type: ContractType;
  readonly nullable: boolean;
  /** Whether a relation may lack the column. */
  readonly optional?: true;
  readonly why: string;
  /** What exports compute of the column. PostgreSQL rejects a column whose type does not fit. */
  readonly uses: (column: string) => readonly string[];
  /** Common names of such a column in other tables, the best first. */
  readonly otherNames: readonly string[];
  /** The SQL of the column in a view over a table that has nothing like it; null if a person has to choose. */
  readonly fallback: string | null;
}

/** How a statement of exports finds rows, which an index has to support. */
export interface AccessPath {
  /** The columns of the index; a collation may follow the name. */
  readonly columns: readonly string[];
  /** Conditions and order of the statement, over the alias `r` and the project `$team`. */
  readonly where: string;
  readonly orderBy: string | null;
  /** What each read costs without the index. */
  readonly without: string;
}

/** What exports need of a relation. */
export interface RelationContract {
  readonly columns: readonly ContractColumn[];
  readonly accessPaths: readonly AccessPath[];
}
