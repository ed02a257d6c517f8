import { commaList, identifier, sql, type Sql } from '../../sql.ts';
import type { Statement } from '../statement.ts';
import { TeamRelation } from '../team_relation.ts';

/**
 * The current person of each distinct id. Of several mappings the one with the newest version applies. A deleted mapping
 * maps to no person.
 */
export const personMappings = (statement: Statement, name: string, sample: Sql | null = null): TeamRelation =>
  new TeamRelation(statement, statement.project.schema.personDistinctIds, name, {
    teamColumn: 'team_id',
    conditions: [sample],
    versioned: { key: 'distinct_id' },
  });

/**
 * The events of a project with their merged persons: the person that the distinct id is mapped to now, else the person that
 * the event names. Nothing else decides who did an event.
 */
export class MergedPersonEvents {
  readonly alias: Sql;
  readonly #statement: Statement;
  readonly #events: TeamRelation;
  readonly #columns = new Map<string, Sql>();
  #mappings: TeamRelation | null = null;

  constructor(statement: Statement, events: TeamRelation) {
    this.#statement = statement;
    this.#events = events;
    this.alias = events.alias;
  }

  /** Adds a column to the selected ones; `person_id` is the id of the merged person. */
  column(name: string): Sql {
    if (name === 'person_id') this.#mappings ??= personMappings(this.#statement, 'mapping');
    let selected = this.#columns.get(name);
    if (selected === undefined) {
      selected = this.#events.column(name);
      this.#columns.set(name, selected);
    }
    return selected;
  }

  /** The same fragment that `column` returns, without selecting the column. */
  reference(name: string): Sql {
    return this.#events.reference(name);
  }

  /** The column with the merged person, if it is selected. */
  get selectedPerson(): Sql | null {
    return this.#columns.get('person_id') ?? null;
  }

  /** The item in FROM, with its alias. */
  from(): Sql {
    const mappings = this.#mappings;
    if (mappings === null) return this.#events.from();
    const distinctId = this.#events.column('distinct_id');
    const isMapped = sql`${mappings.column('distinct_id')} = ${distinctId}`;
    const current = mappings.column('person_id');
    const selected = [...this.#columns].map(([name, stored]) =>
      name === 'person_id' ? sql`coalesce(${current}, ${stored}) as ${identifier(name)}` : stored,
    );
    return sql`(select ${commaList(selected)} from ${this.#events.from()} left join ${mappings.from()} on ${isMapped}) as ${this.alias}`;
  }

  /**
   * Restricts the events to those that can be of one of these persons. No index has merged persons, but the indexes by
   * distinct id and by stored person find these events.
   */
  restrictToPersons(ids: readonly Sql[]): void {
    const mappings = personMappings(this.#statement, 'mapping');
    const distinctId = mappings.column('distinct_id');
    const isMapped = sql`${mappings.column('person_id')} in (${commaList(ids)})`;
    const mapped = sql`array(select ${distinctId} from ${mappings.from()} where ${isMapped})`;
    this.#events.restrict(sql`("distinct_id" = any(${mapped}) or "person_id" in (${commaList(ids)}))`);
  }
}
