/** The details of an activity's failure that only the operator can fix; see src/failures. */
export const operatorFaultDetails = { owner: 'operator' } as const;

/** Whether the details of a failure say that it is an operator's fault. */
export const isOperatorFault = (details: readonly unknown[] | null | undefined): boolean => {
  const [first] = details ?? [];
  return typeof first === 'object' && first !== null && 'owner' in first && first.owner === 'operator';
};
