/** The task queues of bare workflows and of their activities: apart, as those of exportd are. */
export const bareQueues = (prefix: string) => ({
  workflows: `${prefix}-workflows`,
  activities: `${prefix}-activities`,
});
