/** The details of the failure of an activity that used up its retry budget; see src/failures. */
export const budgetExceededDetails = { retry_budget: 'exceeded' } as const;

/** Whether the details of a failure say that it was retried for as long as it may be. */
export const isBudgetExceeded = (details: readonly unknown[] | null | undefined): boolean => {
  const [first] = details ?? [];
  return typeof first === 'object' && first !== null && 'retry_budget' in first;
};
