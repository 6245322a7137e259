"""The development cluster: a real Kubernetes and a real Slurm on one machine, several by name, gone without a trace."""
