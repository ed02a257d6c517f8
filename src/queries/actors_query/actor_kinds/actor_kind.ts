import type { Expression } from '../../../dialect/ast.ts';
import type { DialectReader } from '../../dialect_reader.ts';
import type { FilterTarget } from '../../filters/filter_target.ts';

/** An actor as answers show it; what else it has is of its kind. */
export interface ActorValue {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly distinct_ids?: readonly string[];
}

/** What stands in the place of an actor's id in a column. */
export interface ActorEntry {
  readonly typeName: string;
  /**
   * @param actor nothing where it is not stored
   * @param distinctIds those under which the source says that it acted
   */
  readonly show: (
    id: string | null,
    actor: ActorValue | undefined,
    distinctIds: readonly string[],
  ) => unknown;
}

/** What actors are: where they are read from, and what requests call them. */
export interface ActorKind {
  /** Their table, which is read under its own name. */
  readonly table: 'persons' | 'groups';
  /** Its column that holds their ids. */
  readonly id: string;
  /** Which row of the table is the one that `source.actor_id` means. */
  readonly isActor: Expression;
  /** Columns that a source must not hide. */
  readonly fields: ReadonlySet<string>;
  /** What may stand before a column, such as `person` in `person.properties.email`. */
  readonly names: readonly string[];
  /** Entries of `select`, which are also what `orderBy` may name. */
  readonly entries: Readonly<Record<string, ActorEntry>>;
  /** Entries that are of other kinds of actors, and why there are none here. */
  readonly unsupported: Readonly<Record<string, string>>;
  readonly defaultSelect: readonly string[];
  /** The property that they are sorted by where `orderBy` names an entry. */
  readonly sortedBy: string;
  /** What filters are asked of. */
  readonly filtered: (id: Expression) => Pick<FilterTarget, 'scope' | 'groups'>;
  /** Those whose properties or ids are like a pattern. */
  readonly search: (pattern: string, id: Expression) => Expression;
  /** Those that are stored, by their ids. */
  readonly find: (reader: DialectReader, ids: readonly string[]) => Promise<ReadonlyMap<string, ActorValue>>;
}
