import type { RelationRole } from '../contract.ts';

/** A difference between the source and what exports need. */
export interface SourceFinding {
  /** `error`: exports fail or lose rows. `warning`: they are slow, or something needs care. */
  readonly level: 'error' | 'warning';
  /** The relation, or the role that reads it. */
  readonly subject: string;
  readonly column: string | null;
  /** What was expected and what was found. It contains no value of a row. */
  readonly message: string;
  /** Statements that mend it; null if a view mends it, or a person has to decide. */
  readonly sql: string | null;
}

/** A relation that was checked. */
export interface CheckedRelation {
  readonly role: RelationRole;
  /** The setting that names it. */
  readonly setting: string;
  /** The quoted name. */
  readonly relation: string;
  /** Such as `table` or `view`; null if it does not exist. */
  readonly kind: string | null;
}

/** A view with all columns of the contract, over a relation that lacks some. */
export interface DraftView {
  readonly setting: string;
  /** The name of the view, for the setting. */
  readonly name: string;
  readonly sql: string;
  /** The columns that a person has to fill in. */
  readonly to_choose: readonly string[];
}

/** What `exportd source check` found. */
export interface SourceReport {
  /** Whether exports of the checked models can run. */
  readonly ok: boolean;
  readonly relations: readonly CheckedRelation[];
  readonly findings: readonly SourceFinding[];
  readonly views: readonly DraftView[];
  /** Relations that may have the events, while the configured one does not exist. */
  readonly tables: readonly string[];
}

/**
 * Runs a statement in a READ ONLY transaction with settings, and returns its rows.
 * @throws pg.DatabaseError
 */
export type ReadCatalog = <Row extends object>(
  text: string,
  values?: readonly unknown[],
  settings?: Readonly<Record<string, string>>,
) => Promise<readonly Row[]>;
