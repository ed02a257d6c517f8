import * as z from 'zod';
import { type Expression, findNodes, type Node } from '@exportd/dialect/ast';
import { buildExpression, combineConditions } from '@exportd/dialect/ast_builders';
import { conditionOfFilters } from '../filters/condition.ts';
import { FilterError } from '../filters/operand.ts';
import { propertyFilterListSchema, textValue } from '../filters/schema.ts';
import { asQueryError, QueryError } from './query_errors.ts';

export const actionIdSchema = z.number().int().min(1).max(2_147_483_647);

const elements =
  'Steps cannot select elements of a page. Use a property filter of type hogql on elements_chain, or a property of the event.';
const ofElement = z.null(elements).optional();

/** One way to do an action: an event that meets all conditions of the step. */
export const actionStepSchema = z.strictObject({
  event: textValue.nullish().describe('The name of the event; null for any event.'),
  properties: propertyFilterListSchema.nullish().describe('Property filters, as in queries. All must match.'),
  url: textValue.nullish().describe('What `$current_url` is compared with.'),
  url_matching: z
    .enum(['contains', 'exact', 'regex'])
    .nullish()
    .describe('How. `contains` (the default) respects case, and `%` stands for any text.'),
  selector: ofElement,
  tag_name: ofElement,
  text: ofElement,
  text_matching: z.string().nullish(),
  href: ofElement,
  href_matching: z.string().nullish(),
});

/** One way to do an action, as it is stored: an event with its name and URL that matches the filters. */
export type ActionStep = Pick<
  z.infer<typeof actionStepSchema>,
  'event' | 'properties' | 'url' | 'url_matching'
>;

/** An action of a project: the events that match one of its steps. */
export interface ProjectAction {
  readonly id: number;
  /** Unique in its project. */
  readonly name: string;
  readonly steps: readonly ActionStep[];
}

/**
 * The condition on an event that it matches one of the steps. Its fields are columns of events.
 * @param attr path of the steps
 * @throws FilterError with the path of the invalid field
 */
function conditionOfSteps(steps: readonly ActionStep[], attr: string): Expression {
  const conditions = steps.map(
    (step, index) => stepCondition(step, `${attr}__${index}`) ?? buildExpression('true'),
  );
  return combineConditions('or', conditions) ?? buildExpression('false');
}

function stepCondition(
  { event, properties, url, url_matching }: ActionStep,
  attr: string,
): Expression | null {
  const target = { scope: 'events', attr: `${attr}__properties` } as const;
  return combineConditions('and', [
    event ? buildExpression('event = {event}', { event: { value: event } }) : null,
    url ? urlCondition(url, url_matching ?? 'contains', `${attr}__url`) : null,
    conditionOfFilters(properties, target),
  ]);
}

function urlCondition(
  url: string,
  matching: NonNullable<ActionStep['url_matching']>,
  attr: string,
): Expression | null {
  if (matching === 'contains')
    return buildExpression('toString(properties.$current_url) like {pattern}', {
      pattern: { value: `%${url}%` },
    });
  try {
    const filter = { type: 'event', key: '$current_url', operator: matching, value: url } as const;
    return conditionOfFilters([filter], { scope: 'events', attr });
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    throw new FilterError('invalid_input', error.message, attr);
  }
}

/** The condition of a stored action. @throws QueryError if this version cannot answer it */
export function conditionOfAction({ id, name, steps }: ProjectAction): Expression {
  try {
    return conditionOfSteps(steps, 'steps');
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    throw new QueryError('invalid_input', `Action ${id} (${name}) is invalid: ${error.message}`);
  }
}

/** Checks the steps of a new action. @throws QueryError with the path of the invalid field */
export function checkSteps(steps: readonly ActionStep[]): void {
  const condition = asQueryError(() => conditionOfSteps(steps, 'steps'));
  // An action would depend on another, or on itself.
  if (findNodes(condition, isCall).some(({ name }) => name.text === 'matchesAction'))
    throw new QueryError('invalid_input', 'A step cannot name an action. Write out its conditions.', {
      attr: 'steps',
    });
}

type Call = Extract<Node, { readonly kind: 'call' }>;
const isCall = (node: Node): node is Call => node.kind === 'call';
