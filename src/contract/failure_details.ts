/** The details of an activity's failure, by which src/failures tells the workflow why it was not retried. */
type Details = readonly unknown[] | null | undefined;

/** The details of a failure that only the operator can fix. */
export const operatorFaultDetails = { owner: 'operator' } as const;

/** Whether the details of a failure say that it is an operator's fault. */
export const isOperatorFault = (details: Details): boolean => hasField(details, 'owner', 'operator');

/** The details of the failure of a local activity that took too long for one. */
export const tooSlowDetails = { local: 'too slow' } as const;

/** Whether the details of a failure say that its activity took too long for a local one. */
export const isTooSlow = (details: Details): boolean => hasField(details, 'local', 'too slow');

/** The details of the failure of an activity that used up its retry budget. */
export const budgetExceededDetails = { retry_budget: 'exceeded' } as const;

/** Whether the details of a failure say that it was retried for as long as it may be. */
export const isBudgetExceeded = (details: Details): boolean => hasField(details, 'retry_budget', 'exceeded');

function hasField(details: Details, field: string, value: string): boolean {
  const [first] = details ?? [];
  return typeof first === 'object' && first !== null && Reflect.get(first, field) === value;
}
